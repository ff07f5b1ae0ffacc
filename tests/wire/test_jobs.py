"""Jobs: replaced, paused, resumed, restarted, dropped; their state, and how they are listed."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import StartBroker
from tests.leader import leading
from tests.wire.api import Api, Json, refused, responded
from tests.wire.sql import Sql

MINUTE = 60_000_000


def windowed(tag: str, orders: str, window: str = "TUMBLING(1m)", options: str = "", **more: str) -> str:
    """A statement with a window; `more` replaces parts of it."""
    parts = {"key": "country", "select": "COUNT(*) AS n", "where": "amount > 1", **more}
    return (
        f"CREATE OR REPLACE STREAM j_{tag} AS SELECT {parts['key']}, {parts['select']} FROM {orders} "
        f"WHERE {parts['where']} GROUP BY {parts['key']} WINDOW {window}"
        + (f" WITH ({options})" if options else "")
    )


def head(sql: Sql) -> int:
    """The largest transaction id of the log."""
    ((found,),) = sql.run("SELECT max(txid) FROM queenspark.messages")
    return int(found)


# OR REPLACE


def test_the_same_statement_again_changes_nothing(sql: Sql, orders: str, tag: str) -> None:
    text = windowed(tag, orders)
    assert sql.one(text)["changed"]
    again = sql.one(text.lower() + "  -- the same")
    assert (again["changed"], again["version"]) == (False, 1)
    assert len(sql.bodies(f"j_{tag}")) == 1


def test_without_or_replace_a_job_is_not_replaced(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    message, line, column = sql.refused("\n" + windowed(tag, orders).replace("OR REPLACE ", ""))
    assert message == (f"the job j_{tag} already exists; use CREATE OR REPLACE STREAM, or DROP it first")
    assert (line, column) == (2, 1)


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        ("grace = '5s'", {"grace_us": 5_000_000}),
        ("late = 'drop'", {"late": "drop"}),
        ("retention = '1h'", {}),
    ],
)
def test_options_change_within_the_version(sql: Sql, orders: str, tag: str, options: str, spec: Json) -> None:
    sql(windowed(tag, orders))
    changed = sql.one(windowed(tag, orders, options=options))
    assert (changed["changed"], changed["version"], changed["how"]) == (True, 1, "in place")
    (_, before), (version, after) = sql.bodies(f"j_{tag}")
    assert version == 1
    assert after["spec"] == {**before["spec"], **spec}
    assert after["sources"] == before["sources"]
    assert after["query"]["statement"] == changed["statement"]
    retention = sql.api.read(f"/api/v1/resources/queues/j_{tag}")["options"]["retentionSeconds"]
    assert retention == (3600 if "retention" in options else 0)


def test_a_retention_that_was_configured_stays(sql: Sql, orders: str, tag: str) -> None:
    def retention() -> int:
        found = sql.api.read(f"/api/v1/resources/queues/j_{tag}")["options"]["retentionSeconds"]
        assert isinstance(found, int)
        return found

    sql(windowed(tag, orders))
    sql.api.configure(f"j_{tag}", retentionSeconds=77, maxSize=5)
    sql(windowed(tag, orders, options="grace = '1s'"))
    assert retention() == 77
    sql(windowed(tag, orders, options="retention = '10s'"))
    assert retention() == 10
    sql(windowed(tag, orders))
    assert retention() == 0
    assert sql.api.read(f"/api/v1/resources/queues/j_{tag}")["options"]["maxSize"] == 5


@pytest.mark.parametrize("window", ["TUMBLING(5m)", "SLIDING(5m, 1m)", "SESSION(30s)"])
def test_a_changed_window_takes_over_at_the_boundary(sql: Sql, orders: str, tag: str, window: str) -> None:
    sql(windowed(tag, orders))
    changed = sql.one(windowed(tag, orders, window, "grace = '1s'"))
    assert (changed["version"], changed["how"]) == (2, "at a boundary")
    _, (old_version, old), (version, new) = sql.bodies(f"j_{tag}")
    assert (old_version, version) == (1, 2)
    assert old["until_us"] % MINUTE == 0
    assert old["until"] is None
    assert new["emits_after"] is None
    if window != "SESSION(30s)":
        assert new["from_us"] <= old["until_us"]
    assert sql.stream(f"j_{tag}")[2] == 2


def test_counts_take_over_at_a_position(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    sql(windowed(tag, orders, "COUNT(5)"))
    _, (_, old), (_, new) = sql.bodies(f"j_{tag}")
    assert old["until"]["txid"] > head(sql)
    assert [(source["txid"], source["id"]) for source in new["sources"]] == [(old["until"]["txid"], 0)]
    assert new["emits_after"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"key": "amount"}, {"select": "SUM(amount) AS n"}, {"where": "amount > 2"},
        {"window": "TUMBLING(_created_at, 1m)"}, {"options": "keep = '20m'"},
    ],
)  # fmt: skip
def test_anything_else_changes_by_position(sql: Sql, orders: str, tag: str, change: Any) -> None:
    sql(windowed(tag, orders))
    changed = sql.one(windowed(tag, orders, **change))
    assert (changed["version"], changed["how"]) == (2, "by position")
    _, (_, old), (_, new) = sql.bodies(f"j_{tag}")
    assert old["until"] == new["emits_after"]
    assert (new["emits_after"]["txid"] > head(sql), new["emits_after"]["id"]) == (True, 0)
    assert [(source["txid"], source["id"]) for source in new["sources"]] == [(0, 0)]
    assert (old["until_us"], new["from_us"]) == (None, None)


def test_other_types_of_the_source_change_by_position(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders, select="SUM(amount) AS n"))
    sql.api.push(orders, {"country": "DE", "amount": 1.5})
    assert sql.one(windowed(tag, orders, options="grace = '1s'", select="SUM(amount) AS n"))["version"] == 2
    assert sql.body(f"j_{tag}")["emits_after"] is not None


def test_a_replaced_job_that_starts_latest_reads_from_the_cut(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    sql(windowed(tag, orders, options="start = 'latest'"))
    new = sql.body(f"j_{tag}")
    assert new["sources"][0]["txid"] == new["emits_after"]["txid"]


def test_a_failed_job_is_replaced_from_where_it_failed(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    sql.fail(f"j_{tag}", "broken", (7, 9), bucket=0)
    sql.fail(f"j_{tag}", "broken", (7, 5), bucket=1)
    sql(windowed(tag, orders, "TUMBLING(2m)"))
    _, (_, old), (_, new) = sql.bodies(f"j_{tag}")
    assert old["until"] == new["emits_after"] == {"txid": 7, "id": 5}
    assert sql.job(f"j_{tag}")["state"] == "running"


def test_a_paused_job_stays_paused_when_it_is_replaced(sql: Sql, orders: str, tag: str) -> None:
    sql(
        windowed(tag, orders),
    )
    sql(f"PAUSE JOB j_{tag}")
    sql(windowed(tag, orders, where="amount > 3"))
    assert [body["paused"] for _, body in sql.bodies(f"j_{tag}")[-2:]] == [True, True]
    assert sql.one(f"RESUME JOB j_{tag}")["changed"]
    assert [(version, body["paused"]) for version, body in sql.bodies(f"j_{tag}")[-2:]] == [
        (1, False), (2, False),
    ]  # fmt: skip


def test_no_job_reads_its_own_rows(sql: Sql, orders: str, tag: str) -> None:
    sql(
        f"CREATE STREAM a_{tag} AS SELECT country FROM {orders};"
        f"CREATE STREAM b_{tag} AS SELECT country FROM a_{tag};"
        f"CREATE STREAM c_{tag} AS SELECT country FROM b_{tag}"
    )
    text = f"CREATE OR REPLACE STREAM a_{tag} AS SELECT country FROM"
    message, line, column = sql.refused(f"{text} a_{tag}")
    assert message == f"a_{tag} would read its own rows; read another stream"
    assert (line, column) == (1, len(text) + 2)
    message, _, _ = sql.refused(f"{text} c_{tag}")
    assert message == f"a_{tag} would read its own rows through b_{tag}, c_{tag}; read another stream"


def test_a_change_that_breaks_readers_is_refused(sql: Sql, orders: str, tag: str) -> None:
    job, reader = f"j_{tag}", f"r_{tag}"
    sql(windowed(tag, orders, options="late = 'drop'"))
    sql(f"CREATE STREAM {reader} AS SELECT country, SUM(n) AS s FROM {job} GROUP BY country")
    message, line, column = sql.refused(windowed(tag, orders))
    assert message.startswith(f"the job {reader} reads {job}, and would fail: {job} is updating")
    assert message.endswith(f"drop {reader} first, or choose another name for this stream")
    assert (line, column) == (1, 1)
    other = windowed(tag, orders, options="late = 'drop'", select="COUNT(*) AS m")
    assert "would fail: n is not a column" in sql.refused(other)[0]
    other = windowed(tag, orders, options="late = 'drop'", select="AVG(amount) AS n")
    assert "its columns would have other types" in sql.refused(other)[0]
    more = windowed(tag, orders, options="late = 'drop'", select="COUNT(*) AS n, MAX(amount) AS m")
    assert sql.one(more)["changed"]


def test_a_change_that_makes_a_distant_reader_count_twice_is_refused(sql: Sql, orders: str, tag: str) -> None:
    job, one, two, reader = (f"{name}_{tag}" for name in ("j", "b", "c", "r"))
    sql(windowed(tag, orders, options="late = 'drop'"))
    sql(
        f"CREATE STREAM {one} AS SELECT * FROM {job} WHERE n > 1;"
        f"CREATE STREAM {two} AS SELECT country, n FROM {one};"
        f"CREATE STREAM {reader} AS SELECT country, SUM(n) AS s FROM {two} GROUP BY country"
    )
    message, line, column = sql.refused("SHOW JOBS;\n " + windowed(tag, orders))
    assert message == (
        f"the job {reader} reads {job} through {one}, {two}, and would count its rows twice: {job} would be"
        f" updating; use late = 'drop', let {reader} read only the first revisions (WHERE _revision = 1),"
        f" drop {reader} first, or choose another name for this stream"
    )
    assert (line, column) == (2, 2)
    first = f"CREATE OR REPLACE STREAM {reader} AS SELECT country, SUM(n) AS s FROM {two} WHERE _revision = 1"
    sql(f"{first} GROUP BY country")
    assert sql.one(windowed(tag, orders))["how"] == "in place"


def test_a_change_that_makes_a_computing_stream_count_twice_is_refused(
    sql: Sql, orders: str, tag: str
) -> None:
    job, reader, stream = f"j_{tag}", f"b_{tag}", f"w_{tag}"
    sql(windowed(tag, orders, options="late = 'drop'"))
    sql(f"CREATE STREAM {reader} AS SELECT country, n FROM {job}")
    define = {"name": stream, "namespace": "n", "aggregates": {"c": "count(*)"}}
    direct = f"reads {job}, and would fail: {job} is updating"
    distant = f"reads {job} through {reader}, and would count its rows twice"
    for source, reason in (([job], direct), ([orders, reader], distant)):
        definition = {**define, "source_queue_names": source}
        assert sql.api.post("/api/v1/stream/define", definition).status_code in (200, 201)
        message, line, column = sql.refused(windowed(tag, orders))
        assert message.startswith(f"the windowed stream n.{stream} {reason}")
        assert (line, column) == (1, 1)
    whole = {"name": stream, "namespace": "n", "source_queue_names": [job, reader]}
    assert sql.api.post("/api/v1/stream/define", whole).status_code in (200, 201)
    assert sql.one(windowed(tag, orders))["changed"]


def test_readers_know_whether_the_rows_of_a_replaced_job_are_updating(
    sql: Sql, orders: str, tag: str
) -> None:
    job, one, two = (f"{name}_{tag}" for name in ("j", "b", "c"))
    counted = f"CREATE STREAM d_{tag} AS SELECT SUM(n) AS s FROM {two}"
    sql(windowed(tag, orders, options="late = 'drop'"))
    sql(
        f"CREATE STREAM {one} AS SELECT n FROM {job} WHERE n > 1;"
        f"CREATE STREAM {two} AS SELECT n FROM {one}; PAUSE JOB {two}"
    )
    sql(windowed(tag, orders))
    shown = {row["name"]: row["rows"] for row in sql.table("SHOW STREAMS")}
    assert [shown[name] for name in (job, one, two)] == ["updating"] * 3
    assert sql.one(f"DESCRIBE {two}")["details"]["rows"] == "updating"
    assert sql.refused(counted)[0].startswith(f"{two} is updating")
    assert (sql.job(two)["version"], sql.job(two)["state"]) == (1, "paused")
    sql(windowed(tag, orders, options="late = 'drop'"))
    assert sql.one(f"DESCRIBE {two}")["details"]["rows"] == "append"
    assert sql.one(counted)["changed"]


# State


def test_pause_and_resume_are_definitions(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    paused = sql.one(f"PAUSE JOB j_{tag}")
    assert paused == {"kind": "pause_job", "name": f"j_{tag}", "version": 1, "changed": True}
    assert not sql.one(f"PAUSE JOB default.j_{tag}")["changed"]
    (_, first), (version, second) = sql.bodies(f"j_{tag}")
    assert (version, second) == (1, {**first, "paused": True})
    assert sql.job(f"j_{tag}")["state"] == "paused"
    assert sql.one(f"RESUME JOB j_{tag}")["changed"]
    assert not sql.one(f"RESUME JOB j_{tag}")["changed"]
    assert sql.body(f"j_{tag}") == first
    assert sql.job(f"j_{tag}")["state"] == "running"


def test_a_failed_job_is_restarted(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    sql.fail(f"j_{tag}", "ZeroDivisionError: no")
    job = sql.job(f"j_{tag}")
    assert (job["state"], job["lastError"]) == ("failed", "ZeroDivisionError: no")
    assert sql.one(f"RESTART JOB j_{tag}")["changed"]
    (_, first), (version, second) = sql.bodies(f"j_{tag}")
    assert (version, second) == (1, first)
    assert (
        sql.run("SELECT 1 FROM queenspark.stream_failures WHERE stream_id = %s", sql.stream(f"j_{tag}")[0])
        == []
    )
    assert sql.job(f"j_{tag}")["state"] == "running"
    assert not sql.one(f"RESTART JOB j_{tag}")["changed"]


def test_a_job_without_its_source_has_failed_until_it_is_made_again(sql: Sql, orders: str, tag: str) -> None:
    text = windowed(tag, orders)
    sql(text)
    responded(sql.api.delete(f"/api/v1/resources/queues/{orders}"), 200)
    job = sql.job(f"j_{tag}")
    assert (job["state"], job["lastError"]) == (
        "failed", f"the source {orders} does not exist: its queue was deleted",
    )  # fmt: skip
    sql.api.push(orders, {"country": "DE", "amount": 5})
    assert sql.job(f"j_{tag}")["state"] == "failed"
    assert sql.one(text)["version"] == 2
    assert sql.job(f"j_{tag}")["state"] == "running"


@pytest.mark.parametrize("action", ["PAUSE", "RESUME", "RESTART"])
def test_an_unknown_job_gets_a_hint(sql: Sql, orders: str, tag: str, action: str) -> None:
    sql(windowed(tag, orders))
    message, line, column = sql.refused(f"SHOW JOBS; {action} JOB jj_{tag}")
    assert message == f"there is no job jj_{tag}; did you mean j_{tag}?"
    assert (line, column) == (1, 12)


def test_jobs_are_controlled_over_http(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders).replace(f"j_{tag}", f"shop.j_{tag}"))
    path = f"/api/v1/jobs/shop.j_{tag}"
    assert responded(sql.api.post(f"{path}/pause"), 200)["state"] == "paused"
    assert responded(sql.api.post(f"{path}/resume"), 200)["state"] == "running"
    sql.fail(f"shop.j_{tag}", "x")
    assert responded(sql.api.post(f"{path}/restart"), 200)["state"] == "running"
    assert responded(sql.api.delete(path), 200) == {"deleted": True, "dropped": [f"shop.j_{tag}"]}
    for request in (sql.api.get, sql.api.delete):
        assert refused(request(path), 404) == f"job shop.j_{tag} does not exist"
    assert refused(sql.api.post(f"{path}/pause"), 404) == f"job shop.j_{tag} does not exist"


STATS = """INSERT INTO queenspark.stream_stats
    (stream_id, version, bucket, watermark_us, open_windows, records, windows, late, dropped, dead)
VALUES (%s, 1, 0, 1767225600000000, 3, 10, 4, 2, 1, 5)"""
RATES = """INSERT INTO queenspark.stream_rates (stream_id, arriving, processed, sealed, late, backpressure)
VALUES (%s, 1, 2.5, 0.5, 0, 1)"""


def test_a_job_says_how_it_is_doing(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    stream_id, _, _ = sql.stream(f"j_{tag}")
    sql.run(STATS, stream_id)
    sql.run(RATES, stream_id)
    with leading(sql.database_url):
        job = sql.job(f"j_{tag}")
        details = sql.one(f"DESCRIBE EXTENDED j_{tag}")["details"]
        shown = next(row for row in sql.table("SHOW JOBS") if row["job"] == f"j_{tag}")
    assert job["lagSeconds"] > 0
    counts = {name: job[name] for name in ("openWindows", "late", "dropped", "dead", "watermark")}
    assert counts == {
        "openWindows": 3, "late": 2, "dropped": 1, "dead": 5, "watermark": "2026-01-01T00:00:00.000Z",
    }  # fmt: skip
    assert (job["recordsPerSecond"], job["rowsPerSecond"], job["runsIn"]) == (2.5, 0.5, "streams")
    assert (job["rows"], job["sources"]) == ("updating", [orders])
    assert {name: details[name] for name in counts} == counts
    assert details["retention"] == "not held"
    assert (shown["state"], shown["records_per_second"], shown["dead"]) == ("running", 2.5, 5)


def test_a_job_that_holds_retention_says_so(sql: Sql, orders: str, tag: str) -> None:
    sql.api.configure(orders, retentionSeconds=10)
    sql(windowed(tag, orders))
    sql.run(
        "UPDATE queenspark.messages m SET created_at = m.created_at - interval '110 seconds'"
        " FROM queenspark.queues q WHERE q.id = m.queue_id AND q.name = %s",
        orders,
    )
    described = sql.one(f"DESCRIBE EXTENDED j_{tag}")["details"]["retention"]
    assert re.fullmatch(
        r"held back for 1\d\d s: the job has not read all expired messages of its sources",
        described,
    )
    assert sql.job(f"j_{tag}")["retention"]["heldSeconds"] > 99


def test_failures_of_an_older_version_stay_until_a_restart(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    sql(windowed(tag, orders, where="amount > 2"))
    stream_id, _, _ = sql.stream(f"j_{tag}")
    sql.fail(f"j_{tag}", "older", (7, 5))
    sql.run("UPDATE queenspark.stream_failures SET version = 1 WHERE stream_id = %s", stream_id)
    sql(windowed(tag, orders, where="amount > 3"))
    assert sql.body(f"j_{tag}")["emits_after"]["txid"] > 7
    assert sql.job(f"j_{tag}")["lastError"] == "older"
    sql(f"RESTART JOB j_{tag}")
    assert sql.job(f"j_{tag}")["state"] == "running"


def test_many_requests_at_once_need_few_connections(module_broker: StartBroker, tag: str) -> None:
    started = module_broker(pool_size=2)
    with Api(started.url, started.database_url) as api:
        api.push(f"q_{tag}", {"a": 1})
        sql = Sql(api)
        texts = [f"CREATE STREAM j{n}_{tag} AS SELECT a FROM q_{tag}; SHOW QUEUES" for n in range(10)]
        texts += ["SHOW QUEUES"] * 10
        with ThreadPoolExecutor(20) as pool:
            assert all(pool.map(sql, texts))
        with ThreadPoolExecutor(10) as pool:
            same = list(pool.map(sql.post, [f"CREATE STREAM same_{tag} AS SELECT a FROM q_{tag}"] * 10))
    assert sorted(response.status_code for response in same) == [200] + [400] * 9


def test_dead_records_and_rows_have_a_reason(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    stream_id, _, _ = sql.stream(f"j_{tag}")
    ((txid, id_),) = sql.run(
        "SELECT m.txid, m.id FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
        " WHERE q.name = %s ORDER BY m.id LIMIT 1",
        orders,
    )
    insert = (
        "INSERT INTO queenspark.stream_dead (stream_id, version, key, txid, id, reason, start_us, end_us)"
    )
    sql.run(f"{insert} VALUES (%s, 1, 'DE', %s, %s, 'no number', NULL, NULL)", stream_id, txid, id_)
    sql.run(f"{insert} VALUES (%s, 1, 'DE', 1, 1, 'overflow', 0, 60000000)", stream_id)
    row, record = sql.api.read(f"/api/v1/jobs/j_{tag}/dead")["dead"]
    assert (row["reason"], row["windowStart"], row["windowEnd"]) == (
        "overflow", "1970-01-01T00:00:00.000Z", "1970-01-01T00:01:00.000Z",
    )  # fmt: skip
    assert (record["reason"], record["queue"], record["windowStart"]) == ("no number", orders, None)
    assert len(sql.api.read(f"/api/v1/jobs/j_{tag}/dead", limit=1, offset=1)["dead"]) == 1


def test_jobs_are_listed_in_pages(sql: Sql, orders: str, tag: str) -> None:
    sql(";".join(f"CREATE STREAM {name}_{tag} AS SELECT country FROM {orders}" for name in "bac"))
    page = sql.api.read("/api/v1/jobs", search=tag, sort="-name", limit=2)
    assert [job["name"] for job in page["jobs"]] == [f"c_{tag}", f"b_{tag}"]
    assert (page["total"], page["limit"], page["offset"]) == (3, 2, 0)
    made = sql.api.read("/api/v1/jobs", search=tag, sort="createdAt")["jobs"]
    assert [job["name"] for job in made] == [f"{name}_{tag}" for name in "bac"]


# DROP


def test_a_drop_is_refused_while_others_use_the_rows(sql: Sql, orders: str, tag: str) -> None:
    a, b, c = (f"{name}_{tag}" for name in "abc")
    sql(
        f"CREATE STREAM {a} AS SELECT country FROM {orders}; CREATE STREAM {b} AS SELECT country FROM {a};"
        f"CREATE STREAM {c} AS SELECT country FROM {b}"
    )
    define = {"name": f"w_{tag}", "namespace": "n", "source_queue_names": [a]}
    assert sql.api.post("/api/v1/stream/define", define).status_code == 201
    sql.api.pop(a, consumerGroup="g")
    message, line, column = sql.refused(f"SHOW JOBS;\n  DROP STREAM {a}")
    assert message == (
        f"{a} is used by the job {b}, the windowed stream n.w_{tag}, the consumer group g; "
        "drop these first, or use CASCADE"
    )
    assert (line, column) == (2, 3)
    conflict = responded(sql.api.delete(f"/api/v1/jobs/{a}"), 409)
    assert conflict["code"] == "in_use"
    assert conflict["error"].endswith("drop these first, or pass cascade=true")
    dropped = sql.one(f"DROP STREAM {a} CASCADE")
    assert dropped["dropped"] == [c, b, f"n.w_{tag}", a]
    assert sql.api.read("/api/v1/jobs", search=tag)["total"] == 0
    assert sql.api.get(f"/api/v1/resources/queues/{a}").status_code == 404
    assert sql.api.read("/api/v1/resources/streams", search=tag)["total"] == 0


def test_a_job_is_deleted_over_http_with_its_readers(sql: Sql, orders: str, tag: str) -> None:
    sql(
        f"CREATE STREAM a_{tag} AS SELECT country FROM {orders};"
        f"CREATE STREAM b_{tag} AS SELECT country FROM a_{tag}"
    )
    deleted = responded(sql.api.delete(f"/api/v1/jobs/a_{tag}", cascade="true"), 200)
    assert deleted == {"deleted": True, "dropped": [f"b_{tag}", f"a_{tag}"]}


def test_a_stream_over_two_dropped_jobs_is_dropped_once(sql: Sql, orders: str, tag: str) -> None:
    a, b = f"a_{tag}", f"b_{tag}"
    sql(f"CREATE STREAM {a} AS SELECT country FROM {orders}; CREATE STREAM {b} AS SELECT country FROM {a}")
    define = {"name": f"w_{tag}", "namespace": "n", "source_queue_names": [a, b]}
    assert sql.api.post("/api/v1/stream/define", define).status_code == 201
    assert sql.one(f"DROP STREAM {a} CASCADE")["dropped"] == [f"n.w_{tag}", b, a]


def test_a_dropped_job_ends_its_definitions(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    stream_id, _, _ = sql.stream(f"j_{tag}")
    sql.fail(f"j_{tag}", "x")
    sql(f"DROP STREAM j_{tag}")
    ((body,),) = sql.run(
        "SELECT computing FROM queenspark.definitions WHERE stream_id = %s ORDER BY seq DESC LIMIT 1",
        stream_id,
    )
    assert body is None
    assert sql.run("SELECT 1 FROM queenspark.stream_failures WHERE stream_id = %s", stream_id) == []


def test_a_schema_is_dropped_with_its_readers_only_by_cascade(sql: Sql, tag: str) -> None:
    sql(
        f"CREATE STREAM s_{tag} (a INT) WITH (queue = 'q_{tag}');"
        f"CREATE STREAM j_{tag} AS SELECT a FROM s_{tag};"
        f"CREATE STREAM k_{tag} AS SELECT a FROM j_{tag}"
    )
    message, line, column = sql.refused(f"DROP STREAM s_{tag}")
    assert message == f"s_{tag} is used by the job j_{tag}; drop these first, or use CASCADE"
    assert (line, column) == (1, 1)
    assert sql.one(f"DROP STREAM s_{tag} CASCADE")["dropped"] == [f"k_{tag}", f"j_{tag}", f"s_{tag}"]
    assert sql.api.get(f"/api/v1/resources/queues/q_{tag}").status_code == 200
    message, _, _ = sql.refused(f"DROP STREAM q_{tag}")
    assert message == (
        f"there is no stream q_{tag}; it is a queue, which DELETE /api/v1/resources/queues removes"
    )


@pytest.mark.parametrize("what", ["STREAM", "SOURCE", "SINK"])
def test_a_missing_object_is_dropped_only_if_exists(sql: Sql, tag: str, what: str) -> None:
    assert sql.refused(f"DROP {what} no_{tag}") == (f"there is no {what.lower()} no_{tag}", 1, 1)
    done = sql.one(f"DROP {what} IF EXISTS no_{tag}")
    assert done == {"kind": f"drop_{what.lower()}", "name": f"no_{tag}", "changed": False, "dropped": []}


# SHOW, DESCRIBE, EXPLAIN


def test_streams_and_queues_are_shown(sql: Sql, orders: str, tag: str) -> None:
    sql(windowed(tag, orders))
    sql(f"CREATE STREAM s_{tag} (a INT) WITH (queue = '{orders}')")
    shown = [row for row in sql.table("SHOW STREAMS") if row["name"].endswith(tag)]
    assert [(row["name"], row["kind"], row["rows"], row["reads"]) for row in shown] == [
        (f"j_{tag}", "job", "updating", orders), (f"s_{tag}", "schema", "append", orders),
    ]  # fmt: skip
    queues = [row["queue"] for row in sql.table("SHOW QUEUES") if row["queue"].endswith(tag)]
    assert queues == [f"j_{tag}", orders]


def test_functions_are_shown_with_their_signature(sql: Sql) -> None:
    functions = {row["function"]: row for row in sql.table("SHOW FUNCTIONS")}
    assert functions["UPPER"] == {
        "function": "UPPER", "signature": "UPPER(string)", "family": "strings",
        "description": "The string in upper case.",
    }  # fmt: skip
    assert functions["MEDIAN"]["family"] == "aggregates"
    assert len(functions) > 60


@pytest.mark.parametrize("what", ["SOURCES", "SINKS"])
def test_there_are_no_external_sources_and_sinks(sql: Sql, what: str) -> None:
    assert sql.table(f"SHOW {what}") == []


def test_a_schema_is_described(sql: Sql, orders: str, tag: str) -> None:
    sql(f"CREATE STREAM s_{tag} (a INT, b ARRAY<STRING>) WITH (queue = '{orders}')")
    assert sql.one(f"DESCRIBE s_{tag}") == {
        "kind": "describe",
        "name": f"s_{tag}",
        "columns": [{"name": "column", "type": "string"}, {"name": "type", "type": "string"}],
        "rows": [["a", "int"], ["b", "array<string>"]],
        "statement": f"CREATE STREAM s_{tag} (a INT, b ARRAY<STRING>) WITH (queue = '{orders}')",
        "details": {"kind": "schema", "rows": "append", "reads": [orders]},
    }
    assert sql.refused(f"DESCRIBE no_{tag}")[0].startswith(f"there is no stream, source or queue no_{tag}")


def plan(sql: Sql, statement: str) -> list[str]:
    """The lines of EXPLAIN."""
    return [row["plan"] for row in sql.table(f"EXPLAIN {statement}")]


def test_a_windowed_job_is_explained(sql: Sql, orders: str, tag: str) -> None:
    text = windowed(tag, orders, "TUMBLING(_created_at, 1m)", "late = 'drop'").replace("OR REPLACE ", "")
    assert plan(sql, text) == [
        f"job j_{tag}: in the pipeline's shared streams query, because it reads queues",
        f"source: queue {orders}, with types from its newest messages, from the earliest retained message",
        "records, in the tasks that read the log: decoded columns amount BIGINT, country STRING",
        "  condition: amount > 1; only matching records advance clocks and counts",
        "  key: country",
        "state, in the bucket of the key:",
        "  windows: tumbling, 1m long",
        "  clock: _created_at, for each key; sealed when a record of the key is 0s past their end,"
        " or the key is idle for 10s",
        "  aggregates: COUNT(*) BIGINT",
        "rows:",
        "  columns: country STRING, n BIGINT",
        "  emitted: one per key and window when it is sealed; late records are dropped and counted",
        f"output: queue j_{tag}, partition by the key",
        "kind: append, every row is final",
        "default: grace = '0s'",
        "default: keep = '10m'",
        "default: idle_timeout = '10s'",
        "default: max_ahead = '1d'",
        "default: start = 'earliest'",
        "default: on_error = 'dead_letter'",
    ]
    assert sql.api.get(f"/api/v1/jobs/j_{tag}").status_code == 404


READ = "records, in the tasks that read the log:"
COUNT = "SELECT COUNT(*) AS n FROM {}"
EXPLAINED = [
    ("SELECT * FROM {}", f"{READ} the payload is passed through unchanged"),
    (
        "SELECT * FROM {} WHERE amount > 1",
        f"{READ} the payload is passed through unchanged; decoded columns amount BIGINT",
    ),
    ("SELECT * FROM {}", "output: the response, partition of the record"),
    ("SELECT _partition AS p FROM {}", f"{READ} no payload fields are decoded"),
    ("SELECT amount FROM {} WITH (partition_by = 'amount')", "output: the response, partition by amount"),
    ("SELECT * FROM {} WITH (start = 'latest')", "with types from its newest messages, from now on"),
    (COUNT, "  key: none: all records have one key"),
    (COUNT, "  aggregates since the start, kept without limit"),
    (f"{COUNT} WITH (ttl = '1h')", "  aggregates since the start, kept until the key is idle for 1h"),
    (COUNT, "  emitted: one per record, with the current aggregates"),
    ("SELECT LAG(amount) OVER (ROWS WINDOW BUFFER 9 ROWS) AS l FROM {}", "  the last 9 records of each key"),
    (f"{COUNT} WINDOW COUNT(9, 3)", "  windows: 9 records of a key, every 3, kept without limit"),
    (f"{COUNT} WINDOW COUNT(9)", "  emitted: one per full window"),
    (f"{COUNT} WINDOW SLIDING(5m, 1m)", "  windows: sliding, 5m long, every 1m"),
    (f"{COUNT} WINDOW SESSION(5m)", "  windows: sessions that end after 5m of inactivity"),
    (
        f"{COUNT} WINDOW TUMBLING(5m)",
        "  clock: push time; sealed 0s after their end, nothing is late",
    ),
    (f"{COUNT} WINDOW TUMBLING(5m) HAVING COUNT(*) > 1", "  having: COUNT(*) > 1"),
    (f"{COUNT} WINDOW TUMBLING(5m)", "kind: updating, later rows replace earlier ones"),
]


@pytest.mark.parametrize(("query", "line"), EXPLAINED)
def test_queries_are_explained(sql: Sql, orders: str, query: str, line: str) -> None:
    assert any(line in each for each in plan(sql, query.format(orders)))


def test_a_schema_is_explained(sql: Sql, tag: str) -> None:
    lines = plan(sql, f"CREATE STREAM s_{tag} (a INT) WITH (queues = 'a, b')")
    assert lines == ["declares columns over a, b; starts no job"]
    assert sql.refused(f"EXPLAIN SELECT a FROM s_{tag}")[1:] == (1, 23)


def test_the_start_of_a_source_is_explained(sql: Sql, tag: str) -> None:
    name = f"k_{tag}"
    source = f"CREATE SOURCE {name} (a INT) WITH (connector = 'kafka', brokers = 'nowhere:9092', topic = 't'"
    # Declared directly, because CREATE SOURCE connects to Kafka.
    sql.run(
        "INSERT INTO queenspark.relations (name, kind, statement) VALUES (%s, 'source', %s)",
        name, f"{source}, start = 'latest')",
    )  # fmt: skip

    def shown(more: str = "") -> tuple[str, list[str]]:
        lines = plan(sql, f"SELECT a FROM {name}{more}")
        (found,) = (line for line in lines if line.startswith("source: "))
        return found.rpartition(", ")[2], [line for line in lines if line.startswith("default: start")]

    assert shown() == ("from latest", [])
    assert shown(" WITH (start = 'earliest')") == ("from earliest", [])
    sql.run("UPDATE queenspark.relations SET statement = %s WHERE name = %s", f"{source})", name)
    assert shown() == ("from earliest", ["default: start = 'earliest'"])
    sql(f"DROP SOURCE {name}")


def test_a_job_that_cannot_be_planned_is_shown(sql: Sql, orders: str, tag: str) -> None:
    """A newer version may have made it; the pipeline says so in its error."""
    name = f"odd_{tag}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders}")
    sql.make_unplannable(name, "SELECT x FROM", statement=False)
    sql.fail(name, "the job cannot be planned")
    job = sql.job(name)
    assert (job["state"], job["lastError"], job["columns"]) == ("failed", "the job cannot be planned", [])
    assert [row["rows"] for row in sql.table("SHOW STREAMS") if row["name"] == name] == ["unknown"]


@pytest.mark.parametrize("stored", ["SELECT x FROM", "SELECT gone(country) AS country FROM orders"])
def test_a_job_that_cannot_be_planned_is_replaced_by_a_new_version(
    sql: Sql, orders: str, tag: str, stored: str
) -> None:
    name, reader = f"odd_{tag}", f"r_{tag}"
    good = f"CREATE OR REPLACE STREAM {name} AS SELECT country, amount FROM {orders}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders} WITH (retention = '1h')")
    sql(f"CREATE STREAM {reader} AS SELECT country FROM {name}")
    sql.make_unplannable(name, stored)
    replaced = sql.one(good)
    assert (replaced["version"], replaced["how"]) == (2, "by position")
    assert [column["name"] for column in sql.job(name)["columns"]] == ["country", "amount"]
    sql.make_unplannable(reader, stored)
    assert sql.one(good.replace("amount", "amount + 1 AS amount"))["version"] == 3
    # The same statement is planned again.
    sql.make_unplannable(name, stored, statement=False)
    again = sql.one(good.replace("amount", "amount + 1 AS amount"))
    assert (again["changed"], again["version"]) == (True, 4)


def test_an_unplannable_job_is_not_replaced_by_one_that_breaks_its_readers(
    sql: Sql, orders: str, tag: str
) -> None:
    name, reader = f"odd_{tag}", f"r_{tag}"
    sql(f"CREATE STREAM {name} AS SELECT country FROM {orders}")
    sql(f"CREATE STREAM {reader} AS SELECT country FROM {name}")
    sql.make_unplannable(name, "SELECT x FROM")
    other = f"CREATE OR REPLACE STREAM {name} AS SELECT amount FROM {orders}"
    assert sql.refused(other)[0].startswith(f"the job {reader} reads {name}, and would fail: country")
