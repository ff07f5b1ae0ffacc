"""SQL statements over HTTP: the effect of each one, and rejections with line and column."""

import base64
from pathlib import Path

import pytest

from tests.conftest import StartBroker
from tests.wire.api import Api, Json, refused, responded
from tests.wire.sql import Sql


def test_a_job_is_a_definition_with_a_queue_of_its_own(sql: Sql, orders: str, tag: str) -> None:
    made = sql.one(
        f"create stream totals_{tag} as select country, sum(amount) as total from {orders}"
        " group by country window tumbling(1m)"
    )
    statement = (
        f"CREATE STREAM totals_{tag} AS SELECT country, SUM(amount) AS total FROM {orders} "
        "GROUP BY country WINDOW TUMBLING(1m)"
    )
    assert made == {
        "kind": "create_stream", "name": f"totals_{tag}", "version": 1, "changed": True,
        "statement": statement, "warnings": [],
    }  # fmt: skip
    ((version, body),) = sql.bodies(f"totals_{tag}")
    (source,) = body["sources"]
    assert version == 1
    assert body["spec"] == {"kind": "tumbling", "duration_us": 60_000_000}
    assert (source["queue"], source["txid"], source["id"]) == (orders, 0, 0)
    assert body["query"]["statement"] == statement
    assert (body["partitioned"], body["event_time"], body["start"]) == (True, None, "earliest")
    assert sql.job(f"totals_{tag}")["state"] == "running"


# Names, namespaces and queues


def test_a_namespace_is_part_of_the_queue_name(sql: Sql, orders: str, tag: str) -> None:
    made = sql.one(f"CREATE STREAM shop.big_{tag} AS SELECT country FROM {orders} WHERE amount > 5")
    assert made["name"] == f"shop.big_{tag}"
    body = sql.body(f"shop.big_{tag}")
    assert (body["namespace"], body["name"], body["spec"]) == ("shop", f"big_{tag}", {})
    job = sql.job(f"shop.big_{tag}")
    assert (job["namespace"], job["name"], job["queue"]) == ("shop", f"big_{tag}", f"shop.big_{tag}")
    assert sql.api.get("/api/v1/jobs", namespace="shop", search=tag).json()["total"] == 1


def test_the_default_namespace_may_be_written(sql: Sql, orders: str, tag: str) -> None:
    made = sql.one(f"CREATE STREAM default.a_{tag} AS SELECT country FROM {orders}")
    assert made["name"] == f"a_{tag}"
    assert made["statement"].startswith(f"CREATE STREAM a_{tag} AS")
    assert sql.job(f"default.a_{tag}")["name"] == f"a_{tag}"
    sql(f"CREATE STREAM b_{tag} AS SELECT country FROM default.a_{tag}")
    sql(f"CREATE STREAM c_{tag} AS SELECT country FROM default.{orders}")
    assert [sql.body(f"{name}_{tag}")["sources"][0]["queue"] for name in "bc"] == [f"a_{tag}", orders]


def test_only_the_job_pushes_to_its_queue(sql: Sql, orders: str, tag: str) -> None:
    name = f"only_{tag}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders}")
    item = {"queue": name, "payload": 1}
    push = refused(sql.api.push_items([item]), 400)
    assert "only that job can push to it" in push
    operation = {"type": "push", "items": [item]}
    assert push == refused(sql.api.post("/api/v1/transaction", {"operations": [operation]}), 400)
    sql.api.post("/api/v1/system/maintenance", {"enabled": True})
    try:
        assert push == refused(sql.api.push_items([item]), 400)
    finally:
        sql.api.post("/api/v1/system/maintenance", {"enabled": False})
    assert "DROP STREAM" in refused(sql.api.delete(f"/api/v1/resources/queues/{name}"), 400)
    assert sql.job(name)["state"] == "running"


def test_dead_letters_do_not_go_to_the_queue_of_a_job(sql: Sql, orders: str, tag: str) -> None:
    name = f"j_{tag}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders}")
    body = {"queue": orders, "options": {"deadLetterQueue": name}}
    error = refused(sql.api.post("/api/v1/configure", body), 400)
    assert error == f"deadLetterQueue: {name} is the output queue of a job, which only the job can push to"
    sql.api.configure(orders, deadLetterQueue=f"dlq_{tag}")
    message, _, _ = sql.refused(f"CREATE STREAM dlq_{tag} AS SELECT country FROM {orders}")
    assert message == f"dlq_{tag} is the deadLetterQueue of {orders}; choose another name"


def test_rows_of_jobs_are_not_encrypted(module_broker: StartBroker, tag: str) -> None:
    key = base64.b64encode(bytes(range(32))).decode()
    started = module_broker(encryption_key=key)
    with Api(started.url, started.database_url) as api:
        api.push(f"q_{tag}", {"a": 1})
        Sql(api)(f"CREATE STREAM j_{tag} AS SELECT a FROM q_{tag}")
        body = {"queue": f"j_{tag}", "options": {"encryptionEnabled": True}}
        error = refused(api.post("/api/v1/configure", body), 400)
        assert (
            error
            == f"encryptionEnabled: queue j_{tag} is the output queue of a job, whose rows are not encrypted"
        )


def test_after_a_drop_the_name_is_free_for_a_queue(sql: Sql, orders: str, tag: str) -> None:
    name = f"free_{tag}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders}")
    assert sql.api.push_items([{"queue": name, "payload": 1}]).status_code == 400
    assert sql.one(f"DROP STREAM {name}")["dropped"] == [name]
    sql.api.push(name, 1)
    message, line, column = sql.refused(f"\n CREATE STREAM {name} AS SELECT country FROM {orders}")
    assert (line, column) == (2, 2)
    assert message == f"the queue {name} already exists; choose another name, or delete the queue"


def test_a_job_queue_is_listed_as_a_queue_and_its_rows_are_popped(sql: Sql, orders: str, tag: str) -> None:
    name = f"rows_{tag}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders} WITH (retention = '90s')")
    sql.emit(name, '{"country":"DE"}')
    assert [row["name"] for row in sql.api.read("/api/v1/resources/queues", search=name)["queues"]] == [name]
    options = sql.api.read(f"/api/v1/resources/queues/{name}")["options"]
    assert (options["retentionEnabled"], options["retentionSeconds"]) == (True, 90)
    (message,) = sql.api.take(name, consumerGroup="g")
    assert message["data"] == {"country": "DE"}


def test_a_job_is_no_stream_and_a_stream_no_job(sql: Sql, orders: str, tag: str) -> None:
    name = f"mine_{tag}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders}")
    body = {"streamName": name, "consumerGroup": "g", "timeout": 0}
    assert sql.api.post("/api/v1/stream/poll", body).status_code == 404
    assert sql.api.get(f"/api/v1/resources/streams/{name}").status_code == 404
    assert sql.api.read("/api/v1/resources/streams", search=name)["total"] == 0
    define = {"name": name, "namespace": "default", "source_queue_names": [orders]}
    assert f"the job {name} already exists" in refused(sql.api.post("/api/v1/stream/define", define), 400)
    assert sql.api.post("/api/v1/stream/define", {**define, "name": f"w_{tag}"}).status_code == 201
    message, _, _ = sql.refused(f"CREATE STREAM w_{tag} AS SELECT country FROM {orders}")
    assert message == f"the windowed stream w_{tag} already exists; choose another name"
    assert sql.api.get(f"/api/v1/jobs/w_{tag}").status_code == 404


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("`windows:x`", "begins with windows:"),
        ("`a..b`", "has an empty part before or after a dot"),
        (f"`{'x' * 256}`", "256"),
    ],
)
def test_names_that_no_queue_can_have(sql: Sql, orders: str, name: str, reason: str) -> None:
    message, line, column = sql.refused(f"CREATE STREAM {name} AS SELECT country FROM {orders}")
    assert reason in message
    assert (line, column) == (1, 1)


# All or none


def test_statements_are_applied_all_or_none(sql: Sql, orders: str, tag: str) -> None:
    message, line, column = sql.refused(
        f"CREATE STREAM one_{tag} AS SELECT country FROM {orders};\n"
        f"CREATE STREAM two_{tag} AS SELECT country FROM one_{tag};\n"
        f"CREATE STREAM three_{tag} AS SELECT nothing FROM two_{tag}"
    )
    assert message.startswith(f"nothing is not a column of two_{tag}")
    assert (line, column) == (3, len(f"CREATE STREAM three_{tag} AS SELECT n"))
    assert sql.api.read("/api/v1/jobs", search=tag)["jobs"] == []
    assert sql.api.get(f"/api/v1/resources/queues/one_{tag}").status_code == 404


def test_later_statements_see_objects_of_earlier_ones(sql: Sql, tag: str) -> None:
    results = sql(
        f"CREATE STREAM s_{tag} (country STRING, amount BIGINT) WITH (queue = 'q_{tag}');"
        f"INSERT INTO s_{tag} VALUES ('DE', 1 + 1), ('it''s', NULL);"
        f"CREATE STREAM j_{tag} AS SELECT country FROM s_{tag};"
        f"PAUSE JOB j_{tag};"
        f"DESCRIBE j_{tag}"
    )
    kinds = [result["kind"] for result in results]
    assert kinds == ["declare_stream", "insert", "create_stream", "pause_job", "describe"]
    assert results[1]["count"] == 2
    messages = sql.api.drain(f"q_{tag}", 2, consumerGroup="g")
    assert [message["data"] for message in messages] == [
        {"country": "DE", "amount": 2}, {"country": "it's", "amount": None},
    ]  # fmt: skip
    assert sql.job(f"j_{tag}")["state"] == "paused"


def test_a_dry_run_checks_everything_and_changes_nothing(sql: Sql, orders: str, tag: str) -> None:
    text = (
        f"CREATE STREAM s_{tag} (country STRING) WITH (queue = 'q_{tag}'); INSERT INTO s_{tag} VALUES ('DE');"
        f"CREATE STREAM j_{tag} AS SELECT country FROM {orders}"
    )
    results = sql(text, dryRun=True)
    assert [result["changed"] for result in results] == [True, True, True]
    assert sql.api.read("/api/v1/jobs", search=tag)["jobs"] == []
    assert sql.api.get(f"/api/v1/resources/queues/q_{tag}").status_code == 404
    select = sql.one(f"SELECT country, amount FROM {orders}", dryRun=True)
    assert select["columns"] == [{"name": "country", "type": "string"}, {"name": "amount", "type": "bigint"}]
    assert select["rows"] == []
    assert len(sql(text)) == 3


def test_an_error_of_a_dry_run_is_the_same(sql: Sql, tag: str) -> None:
    error = responded(sql.post(f"DROP STREAM nothing_{tag}", dryRun=True), 400)
    assert (error["error"], error["line"], error["column"]) == (f"there is no stream nothing_{tag}", 1, 1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [({}, "sql is required"), ({"sql": " ; "}, "sql is empty: send at least one statement")],
)
def test_a_request_without_a_statement(sql: Sql, body: Json, reason: str) -> None:
    assert reason in refused(sql.api.post("/api/v1/sql", body), 400)


def test_a_select_stands_alone(sql: Sql, orders: str) -> None:
    message, line, column = sql.refused(f"SHOW JOBS;\nSELECT * FROM {orders}")
    assert (message, line, column) == (
        "a SELECT must be the only statement of its request; send it separately",
        2,
        1,
    )


# Readable relations


def test_an_undeclared_queue_is_sampled(sql: Sql, tag: str) -> None:
    queue = f"q_{tag}"
    sql.api.push(queue, {"a": 1, "b": "x", "c": {"d": 1.5}}, {"a": 2, "b": 3})
    assert sql.table(f"DESCRIBE {queue}") == [
        {"column": "a", "type": "bigint"},
        {"column": "b", "type": "string"},
        {"column": "c", "type": "json"},
        {"column": "c.d", "type": "double"},
    ]
    details = sql.one(f"DESCRIBE {queue}")["details"]
    assert details == {"kind": "queue", "rows": "append", "reads": [queue]}


def test_an_encrypted_queue_is_sampled(module_broker: StartBroker, tag: str) -> None:
    key = base64.b64encode(bytes(range(32))).decode()
    started = module_broker(encryption_key=key)
    with Api(started.url, started.database_url) as api:
        api.configure(f"q_{tag}", encryptionEnabled=True)
        api.push(f"q_{tag}", {"secret": 1})
        assert Sql(api).table(f"DESCRIBE q_{tag}") == [{"column": "secret", "type": "bigint"}]


def test_an_empty_queue_needs_declared_columns(sql: Sql, tag: str) -> None:
    sql.api.configure(f"q_{tag}")
    message, line, column = sql.refused(f"CREATE STREAM j_{tag} AS\nSELECT a FROM q_{tag}")
    assert message == (
        f"the queue q_{tag} is empty, so its columns are unknown; declare them: "
        f"CREATE STREAM … (column type, …) WITH (queue = 'q_{tag}')"
    )
    assert (line, column) == (2, 15)


def test_a_misspelt_name_gets_a_hint(sql: Sql, orders: str, tag: str) -> None:
    message, line, column = sql.refused(f"CREATE STREAM j_{tag} AS SELECT country FROM {orders[:-1]}")
    assert message == f"there is no stream, source or queue {orders[:-1]}; did you mean {orders}?"
    assert (line, column) == (1, len(f"CREATE STREAM j_{tag} AS SELECT country FROM o"))


def test_window_queues_cannot_be_read(sql: Sql, orders: str, tag: str) -> None:
    sql.api.post(
        "/api/v1/stream/define", {"name": f"w_{tag}", "namespace": "n", "source_queue_names": [orders]}
    )
    message, _, _ = sql.refused(f"EXPLAIN SELECT * FROM `windows:n/w_{tag}`")
    assert message.startswith(f"there is no stream, source or queue windows:n/w_{tag}")


def test_rows_that_are_in_no_queue_have_no_retention(sql: Sql, orders: str, tag: str) -> None:
    for text in (f"SELECT country FROM {orders}", f"EXPLAIN SELECT country FROM {orders}"):
        message, line, column = sql.refused(f"{text} WITH (retention = '7d')")
        assert message == "retention does not apply to this query: its rows are in no queue"
        assert (line, column) == (1, len(text) + 8)


def test_every_queue_is_shown(sql: Sql, tag: str) -> None:
    sql.run(f"INSERT INTO queenspark.queues (name) SELECT '{tag}_' || n FROM generate_series(1, 1001) n")
    shown = {row["queue"] for row in sql.table("SHOW QUEUES")}
    sql.run(f"DELETE FROM queenspark.queues WHERE name LIKE '{tag}!_%%' ESCAPE '!'")
    assert {f"{tag}_{n}" for n in range(1, 1002)} <= shown


def test_a_schema_over_several_queues(sql: Sql, tag: str) -> None:
    made = sql.one(f"CREATE STREAM both_{tag} (a INT) WITH (queues = 'x_{tag}, y_{tag}')")
    assert made["statement"] == f"CREATE STREAM both_{tag} (a INT) WITH (queues = 'x_{tag}, y_{tag}')"
    sql(f"CREATE STREAM j_{tag} AS SELECT a FROM both_{tag}")
    assert [source["queue"] for source in sql.body(f"j_{tag}")["sources"]] == [f"x_{tag}", f"y_{tag}"]
    message, line, column = sql.refused(f"INSERT INTO both_{tag} VALUES (1)")
    assert message == (
        f"both_{tag} reads several queues: x_{tag}, y_{tag}; insert into a stream over one of them"
    )
    assert (line, column) == (1, 1)


def test_a_job_over_a_schema_makes_the_queue_again(sql: Sql, tag: str) -> None:
    sql(f"CREATE STREAM s_{tag} (a INT) WITH (queue = 'q_{tag}')")
    sql.api.delete(f"/api/v1/resources/queues/q_{tag}")
    sql(f"CREATE STREAM j_{tag} AS SELECT a FROM s_{tag}")
    assert sql.job(f"j_{tag}")["state"] == "running"


def test_a_schema_may_have_the_name_of_its_queue(sql: Sql, orders: str) -> None:
    sql(f"CREATE STREAM {orders} (amount DOUBLE) WITH (queue = '{orders}')")
    assert sql.table(f"DESCRIBE {orders}") == [{"column": "amount", "type": "double"}]


def test_a_schema_over_the_rows_of_a_job_is_refused(sql: Sql, orders: str, tag: str) -> None:
    sql(f"CREATE STREAM j_{tag} AS SELECT country FROM {orders}")
    message, line, column = sql.refused(f"CREATE STREAM s_{tag} (a INT) WITH (queue = 'j_{tag}')")
    assert message == (
        f"the queue j_{tag} is the output queue of the job j_{tag}, whose columns are already known;"
        f" use j_{tag} in FROM without declaring it"
    )
    assert (line, column) == (1, len(f"CREATE STREAM s_{tag} (a INT) WITH (q"))


def test_a_schema_is_declared_once_and_may_be_replaced(sql: Sql, orders: str, tag: str) -> None:
    text = f"CREATE STREAM s_{tag} (a INT) WITH (queue = '{orders}')"
    assert sql.one(text)["changed"]
    message, _, _ = sql.refused(text)
    assert message == f"the stream s_{tag} already exists; use CREATE OR REPLACE STREAM, or DROP it first"
    again = text.replace("CREATE", "CREATE OR REPLACE")
    assert not sql.one(again)["changed"]
    assert sql.one(again.replace("a INT", "a BIGINT"))["changed"]
    assert sql.table(f"DESCRIBE s_{tag}") == [{"column": "a", "type": "bigint"}]
    message, _, _ = sql.refused(f"CREATE OR REPLACE STREAM s_{tag} AS SELECT country FROM {orders}")
    assert message == (
        f"s_{tag} is a stream over a queue, without a job; DROP it first, or choose another name"
    )
    sql(f"CREATE STREAM j_{tag} AS SELECT country FROM {orders}")
    message, _, _ = sql.refused(f"CREATE OR REPLACE STREAM j_{tag} (a INT) WITH (queue = '{orders}')")
    assert message == f"the job j_{tag} already exists; choose another name, or DROP it first"


def test_a_column_with_the_name_of_the_revision_does_not_count_as_one(
    sql: Sql, orders: str, tag: str
) -> None:
    fixed = f"SELECT SUM(n) AS n FROM t_{tag} WHERE _revision = 1 GROUP BY country"
    window = f"FROM {orders} GROUP BY country WINDOW TUMBLING(_created_at, 1m)"
    for fake in ("COUNT(*) AS _revision", "1 AS _Revision"):
        sql(f"CREATE OR REPLACE STREAM t_{tag} AS SELECT country, COUNT(*) AS n, {fake} {window}")
        message, _, _ = sql.refused(f"CREATE STREAM u_{tag} AS {fixed}")
        assert message.endswith("create it with late = 'drop'")
        sql(f"CREATE OR REPLACE STREAM v_{tag} AS SELECT n FROM t_{tag} WHERE _revision = 1")
        assert sql.one(f"DESCRIBE v_{tag}")["details"]["rows"] == "updating"
        sql(f"DROP STREAM t_{tag} CASCADE")
    sql(
        f"CREATE STREAM c_{tag} AS SELECT country, COUNT(*) AS _revision FROM {orders} GROUP BY country;"
        f"CREATE STREAM d_{tag} AS SELECT country FROM c_{tag} WHERE _revision = 1"
    )
    assert sql.one(f"DESCRIBE d_{tag}")["details"]["rows"] == "updating"
    assert "d_" in sql.refused(f"CREATE STREAM e_{tag} AS SELECT COUNT(*) AS n FROM d_{tag}")[0]


def test_a_selected_revision_is_the_revision(sql: Sql, orders: str, tag: str) -> None:
    sql(
        f"CREATE STREAM t_{tag} AS SELECT country, COUNT(*) AS n, _revision FROM {orders} GROUP BY country "
        f"WINDOW TUMBLING(_created_at, 1m);"
        f"CREATE STREAM u_{tag} AS SELECT n, _revision FROM t_{tag} WHERE n > 1;"
        f"CREATE STREAM v_{tag} AS SELECT SUM(n) AS n FROM t_{tag} WHERE _REVISION = 1 GROUP BY country;"
        f"CREATE STREAM w_{tag} AS SELECT SUM(n) AS n FROM u_{tag} WHERE n > 2 AND 1 = _revision"
    )


def test_rows_of_a_job_have_its_columns_and_kind(sql: Sql, orders: str, tag: str) -> None:
    sql(
        f"CREATE STREAM win_{tag} AS SELECT country, COUNT(*) AS n FROM {orders} GROUP BY country "
        "WINDOW TUMBLING(_created_at, 1m) WITH (grace = '30s', idle_timeout = '20s');"
        f"CREATE STREAM first_{tag} AS SELECT n, _revision AS r FROM win_{tag} WHERE _revision = 1"
    )
    described = sql.one(f"DESCRIBE win_{tag}")
    assert described["rows"] == [["country", "string"], ["n", "bigint"]]
    assert described["details"]["rows"] == "updating"
    assert sql.one(f"DESCRIBE first_{tag}")["details"]["rows"] == "append"
    # Nested windows wait as long as the rows of the first ones can be late.
    plan = [
        row["plan"] for row in sql.table(f"EXPLAIN SELECT COUNT(*) AS c FROM first_{tag} WINDOW TUMBLING(5m)")
    ]
    assert any(line.startswith("warning: grace defaults to 50s") for line in plan)


def test_aggregates_over_updating_rows_are_refused(sql: Sql, orders: str, tag: str) -> None:
    sql(f"CREATE STREAM u_{tag} AS SELECT country, COUNT(*) AS n FROM {orders} GROUP BY country")
    message, line, column = sql.refused(
        f"CREATE STREAM x_{tag} AS SELECT SUM(n) AS s FROM u_{tag} GROUP BY country"
    )
    assert message.startswith(f"u_{tag} is updating")
    assert (line, column) == (1, len(f"CREATE STREAM x_{tag} AS SELECT SUM(n) AS s FROM u"))


def test_a_job_over_whole_payloads_is_sampled_from_its_source(sql: Sql, orders: str, tag: str) -> None:
    sql(f"CREATE STREAM all_{tag} AS SELECT * FROM {orders}")
    assert sql.table(f"DESCRIBE all_{tag}") == [
        {"column": "amount", "type": "bigint"}, {"column": "country", "type": "string"},
    ]  # fmt: skip
    sql.emit(f"all_{tag}", '{"amount": 1.5}')
    assert sql.table(f"DESCRIBE all_{tag}") == [{"column": "amount", "type": "double"}]
    assert sql.job(f"all_{tag}")["columns"] == [{"name": "payload", "type": "json"}]


def test_where_a_job_begins(sql: Sql, orders: str, tag: str) -> None:
    sql(
        f"CREATE STREAM late_{tag} AS SELECT country FROM {orders} WITH (start = 'latest');"
        f"CREATE STREAM time_{tag} AS SELECT country FROM {orders} WITH (start = '2026-01-31 12:00')"
    )
    late, time = sql.body(f"late_{tag}"), sql.body(f"time_{tag}")
    assert late["sources"][0]["txid"] > 0
    assert (time["start"], late["start"]) == ("2026-01-31T12:00:00+00:00", "latest")
    message, line, column = sql.refused(
        f"CREATE STREAM no_{tag} AS SELECT country FROM {orders} WITH (start = '2026-02-31')"
    )
    assert message.startswith("start is '2026-02-31', which is not a time")
    assert (line, column) == (1, len(f"CREATE STREAM no_{tag} AS SELECT country FROM {orders} WITH (s"))


def test_rows_of_insert_are_part_of_the_transaction(sql: Sql, tag: str) -> None:
    """If they cannot be pushed, the whole request is rolled back, including the queue it creates."""
    sql.run(
        f"CREATE FUNCTION refuse_{tag}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'the disk is full'; END$$"
    )
    sql.run(
        f"CREATE TRIGGER refuse_{tag} BEFORE INSERT ON queenspark.messages FOR EACH ROW"
        f" WHEN (NEW.payload LIKE '%%poison_{tag}%%') EXECUTE FUNCTION refuse_{tag}()"
    )
    statements = (
        f"CREATE STREAM s_{tag} (a STRING) WITH (queue = 'q_{tag}'); INSERT INTO s_{tag} VALUES ('fine');"
        f"CREATE STREAM j_{tag} AS SELECT a FROM s_{tag}; INSERT INTO s_{tag} VALUES ('{{}}_{tag}')"
    )
    try:
        assert sql.post(statements.format("poison")).status_code >= 500
    finally:
        sql.run(f"DROP TRIGGER refuse_{tag} ON queenspark.messages; DROP FUNCTION refuse_{tag}")
    assert not sql.run("SELECT 1 FROM queenspark.queues WHERE name LIKE %s", f"%{tag}")
    assert not sql.run("SELECT 1 FROM queenspark.relations WHERE name LIKE %s", f"%{tag}")
    assert not sql.run("SELECT 1 FROM queenspark.messages WHERE payload LIKE %s", f"%{tag}%")
    kinds = [result["kind"] for result in sql(statements.format("good"))]
    assert kinds == ["declare_stream", "insert", "create_stream", "insert"]
    found = sql.api.take(f"q_{tag}", batch=10)
    assert [message["data"] for message in found] == [{"a": "fine"}, {"a": f"good_{tag}"}]


def test_a_dry_run_inserts_nothing(sql: Sql, tag: str) -> None:
    statements = f"CREATE STREAM s_{tag} (a INT) WITH (queue = 'q_{tag}'); INSERT INTO s_{tag} VALUES (1)"
    assert sql.post(statements, dryRun=True).status_code == 200
    assert not sql.run("SELECT 1 FROM queenspark.queues WHERE name = %s", f"q_{tag}")
    sql(statements)
    assert len(sql.api.take(f"q_{tag}", batch=10)) == 1


def test_inserts_are_checked(sql: Sql, orders: str, tag: str) -> None:
    sql(f"CREATE STREAM s_{tag} (a INT, b STRING) WITH (queue = 'q_{tag}')")
    message, line, column = sql.refused(f"INSERT INTO s_{tag} VALUES (1, 'x'),\n  ('x', 'y')")
    assert message == "a is a INT, found STRING; use CAST"
    assert (line, column) == (2, 4)
    message, _, _ = sql.refused(f"INSERT INTO {orders} VALUES (1)")
    assert message == f"{orders} is not declared over a queue; INSERT needs a declared stream"
    sql.api.configure(f"q_{tag}", maxSize=1)
    sql.api.push(f"q_{tag}", 1)
    assert sql.post(f"INSERT INTO s_{tag} VALUES (1, 'x')").status_code == 429


def test_a_job_that_is_applied_again_reads_its_changed_source(sql: Sql, tag: str, tmp_path: Path) -> None:
    def apply(folder: str) -> list[bool]:
        (tmp_path / folder).mkdir(exist_ok=True)
        with_ = f"with (connector = 'files', path = '{tmp_path / folder}', format = 'json')"
        results = sql(
            f"create or replace source lines_{tag} (n bigint) {with_};"
            f"create or replace stream kept_{tag} as select n from lines_{tag} where n > 1"
        )
        return [result["changed"] for result in results]

    assert apply("one") == [True, True]
    assert apply("one") == [False, False]
    assert apply("two") == [True, True]
    assert sql.body(f"kept_{tag}")["reads"]["options"]["path"] == str(tmp_path / "two")
    sql(f"drop stream kept_{tag}; drop source lines_{tag}")
