"""Streams that are defined with rows as their output: the jobs of equivalent statements."""

import re
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from tests.jobs.system import Jobs
from tests.wire.api import Json, refused, responded

SOME: list[Json] = [
    {"user": "ann", "n": 1, "at": "2026-01-31T12:00:00Z"},
    {"user": "bob", "n": 5, "at": "2026-01-31T12:00:10Z"},
    {"user": "Ann", "n": 2, "at": "2026-01-31T12:00:20Z"},
    {"user": "bob", "n": -3, "at": "2026-01-31T12:00:30Z"},
    {"user": "ann", "n": 4, "at": "2026-01-31T12:01:10Z"},
    {"user": "bob", "n": 6, "at": "2026-01-31T12:01:20Z"},
    {"user": "ann", "n": 7, "at": "2026-01-31T12:05:00Z"},
    {"user": "bob", "n": 7, "at": "2026-01-31T12:05:00Z"},
]
WHO: dict[str, Any] = {
    "columns": {"who": "upper(data.user)", "twice": "data.n * 2"}, "key": ["who"], "where": "twice > 0",
    "aggregates": {"total": "sum(twice)"}, "event_time": "data.at", "window_grace_period_ms": 0,
}  # fmt: skip
THREE = {"window_type": "count", "window_size_count": 3}
SELECT = (
    "SELECT UPPER(data.user) AS who, {}SUM(data.n * 2) AS total, window_start, window_end FROM {{orders}}"
)
BY_WHO = "WHERE data.n * 2 > 0 GROUP BY UPPER(data.user) WINDOW"
TIMED = "WITH (grace = '0s', late = 'process')"
#: Definitions, and the statement of each.
SAME: dict[str, tuple[Json, str]] = {
    "tumbling": (WHO, f"{SELECT.format('')} {BY_WHO} TUMBLING(data.at, 1m) {TIMED}"),
    "sliding": (
        {**WHO, "window_type": "sliding", "window_duration_ms": 120_000, "window_slide_ms": 60_000},
        f"{SELECT.format('')} {BY_WHO} SLIDING(data.at, 2m, 1m) {TIMED}",
    ),
    "session": (
        {**WHO, "window_type": "session", "window_gap_ms": 30_000},
        f"{SELECT.format('')} {BY_WHO} SESSION(data.at, 30s) {TIMED}",
    ),
    "count": (
        {**WHO, "window_type": "count", "window_size_count": 2, "window_slide_count": 1},
        f"{SELECT.format('')} {BY_WHO} COUNT(data.at, 2, 1)",
    ),
    "rows": (
        {**WHO, "window_type": "rows", "window_size_count": 2, "having": "total > 4"},
        f"{SELECT.format('LAST(data.n * 2) AS twice, ')} {BY_WHO} ROWS(data.at, 2) HAVING total > 4",
    ),
    "changes": (
        {**WHO, "emit": "changes", "having": "sum(twice) < 20 and who <> 'X'"},
        f"{SELECT.format('')} {BY_WHO} TUMBLING(data.at, 1m)"
        f" HAVING SUM(data.n * 2) < 20 AND UPPER(data.user) <> 'X' EMIT CHANGES {TIMED}",
    ),
    "options": (
        {
            **WHO, "late": "drop", "idle_timeout_ms": 5000, "emit_empty": True,
            "window_retention_ms": 3_600_000, "window_grace_period_ms": 1000, "start": "2026-01-01T00:00:00Z",
        },
        f"{SELECT.format('')} {BY_WHO} TUMBLING(data.at, 1m) WITH (emit_empty = 'true', grace = '1s',"
        " idle_timeout = '5s', late = 'drop', retention = '1h', start = '2026-01-01T00:00:00+00:00')",
    ),
    "several keys": (
        {"key": ["data.user", "data.n % 2"], "window_type": "count", "window_size_count": 1},
        "SELECT data.user, data.n % 2, window_start, window_end FROM {orders}"
        " GROUP BY data.user, data.n % 2 WINDOW COUNT(1)",
    ),
    "partitions": (
        {"partitioned": True, "aggregates": {"n": "count(*)"}, **THREE},
        "SELECT _partition, COUNT(*) AS n, window_start, window_end FROM {orders}"
        " GROUP BY _partition WINDOW COUNT(3)",
    ),
    "no key": (
        {"aggregates": {"n": "sum(data.n)"}, **THREE},
        "SELECT SUM(data.n) AS n, window_start, window_end FROM {orders} WINDOW COUNT(3)",
    ),
}  # fmt: skip


def try_define(jobs: Jobs, name: str, /, **fields: Any) -> httpx2.Response:
    given = {
        "name": jobs.name(name), "namespace": "default", "source_queue_names": [jobs.name("orders")],
        "output": "rows",
    }  # fmt: skip
    return jobs.api.post("/api/v1/stream/define", {**given, **fields})


def define(jobs: Jobs, name: str, /, **fields: Any) -> Json:
    return responded(try_define(jobs, name, **fields), 201)


def reason(jobs: Jobs, **fields: Any) -> str:
    return refused(try_define(jobs, "totals", **fields), 400)


def in_partitions(jobs: Jobs, name: str) -> list[tuple[str, Json, dict[str, str]]]:
    rows = [(row.partition, row.data, row.headers) for row in jobs.rows(name)]
    return sorted(rows, key=lambda row: row[0])


def push(jobs: Jobs) -> None:
    jobs.push("orders", SOME[:4], partition="p1")
    jobs.push("orders", SOME[4:], partition="p2")


@pytest.mark.parametrize("kind", SAME)
def test_rows_are_those_of_the_equivalent_statement(jobs: Jobs, kind: str) -> None:
    definition, select = SAME[kind]
    push(jobs)
    defined = define(jobs, "defined", **definition)
    (created,) = jobs.run(f"CREATE STREAM {{created}} AS {select}")
    assert defined["statement"].replace(jobs.name("defined"), jobs.name("created")) == created["statement"]
    jobs.drain()
    assert len(jobs.rows("defined")) >= 2
    assert in_partitions(jobs, "defined") == in_partitions(jobs, "created")
    shown, same = jobs.job("defined"), jobs.job("created")
    assert shown["statement"] == defined["statement"]
    assert [shown[name] for name in ("columns", "rows", "sources")] == [
        same[name] for name in ("columns", "rows", "sources")
    ]


def test_the_rows_of_a_window(jobs: Jobs) -> None:
    push(jobs)
    define(jobs, "totals", **WHO)
    jobs.drain()
    noon = {"window_start": "2026-01-31T12:00:00.000000Z", "window_end": "2026-01-31T12:01:00.000000Z"}
    assert next(row.data for row in jobs.rows("totals") if row.partition == "BOB") == {
        "who": "BOB", "total": 10, **noon,
    }  # fmt: skip


def test_rows_windows_emit_the_columns_of_each_record(jobs: Jobs) -> None:
    push(jobs)
    define(
        jobs, "each", columns={"who": "upper(data.user)", "twice": "data.n * 2"}, where="who = 'ANN'",
        window_type="rows", window_size_count=1,
    )  # fmt: skip
    jobs.drain()
    assert [(row.data["who"], row.data["twice"]) for row in jobs.rows("each")] == [
        ("ANN", 2), ("ANN", 4), ("ANN", 8), ("ANN", 14),
    ]  # fmt: skip


def test_the_response_names_the_queue_and_the_statement(jobs: Jobs) -> None:
    push(jobs)
    name = jobs.name("totals")
    made = define(jobs, "totals", namespace="shop", aggregates={"n": "count(*)"})
    job = jobs.sql.job(f"shop.{name}")
    assert made == {
        "success": True, "stream_id": made["stream_id"], "name": name, "namespace": "shop", "version": 1,
        "output": "rows", "queue": f"shop.{name}", "statement": job["statement"], "warnings": [],
    }  # fmt: skip
    assert job["statement"].startswith(f"CREATE STREAM shop.{name} AS SELECT COUNT(*) AS n, window_start,")
    windows = define(jobs, "windows", output="windows")
    assert windows["output"] == "windows"
    assert "queue" not in windows
    assert jobs.api.delete(f"/api/v1/resources/streams/{jobs.name('windows')}").status_code == 200


def test_redefinition_replaces_the_job_as_sql_does(jobs: Jobs) -> None:
    push(jobs)
    assert define(jobs, "totals", **WHO)["version"] == 1
    assert define(jobs, "totals", **WHO)["version"] == 1
    assert define(jobs, "totals", **{**WHO, "window_grace_period_ms": 1000})["version"] == 1
    changed = {**WHO, "columns": {"who": "upper(data.user)", "twice": "data.n * 3"}}
    assert define(jobs, "totals", **changed)["version"] == 2
    assert "data.n * 3" in jobs.job("totals")["statement"]
    (replaced,) = jobs.run("CREATE OR REPLACE STREAM {totals} AS SELECT data.n FROM {orders}")
    assert replaced["version"] == 3


def test_a_stream_is_either_windows_or_rows(jobs: Jobs) -> None:
    push(jobs)
    define(jobs, "totals")
    assert "already exists" in reason(jobs, output="windows")
    name = jobs.name("windows")
    define(jobs, "windows", output="windows")
    assert refused(try_define(jobs, "windows"), 400) == (
        f"name: the windowed stream {name} already exists; choose another name"
    )
    assert jobs.api.delete(f"/api/v1/resources/streams/{name}").status_code == 200


def test_poll_points_to_the_queue_of_the_rows(jobs: Jobs) -> None:
    push(jobs)
    name = jobs.name("totals")
    define(jobs, "totals", namespace="shop")
    for more in ({}, {"namespace": "shop"}):
        body = {"streamName": name, "consumerGroup": "g", "timeout": 0, **more}
        error = refused(jobs.api.post("/api/v1/stream/poll", body), 404)
        assert error.startswith(
            f"the stream {name} emits rows, not windows: pop them from the queue shop.{name}"
        )
    body = {"streamName": name, "consumerGroup": "g", "timeout": 0, "namespace": "other"}
    assert refused(jobs.api.post("/api/v1/stream/poll", body), 404) == "Stream not found"


def test_a_declared_stream_can_be_the_source(jobs: Jobs) -> None:
    push(jobs)
    jobs.push("more", SOME[:2])
    queues = [jobs.name("orders"), jobs.name("more")]
    assert reason(jobs, source_queue_names=queues) == (
        f"source_queue_names: {', '.join(queues)} cannot be read together with output rows: declare a stream"
        f" over them, CREATE STREAM … (column type, …) WITH (queues = '{', '.join(queues)}'), and name that"
        " stream here"
    )
    jobs.run("CREATE STREAM {both} (user STRING, n BIGINT) WITH (queues = '{orders}, {more}')")
    both = {"source_queue_names": [jobs.name("both")], "aggregates": {"total": "sum(n)"}}
    define(jobs, "totals", **both, window_type="count", window_size_count=10)
    jobs.drain()
    assert [row.data["total"] for row in jobs.rows("totals")] == [sum(each["n"] for each in SOME) + 6]


def test_a_path_may_begin_with_the_name_of_the_queue(jobs: Jobs) -> None:
    queue = jobs.name("cart")
    jobs.push("cart", [{queue: {"id": 7}, "id": 1}])
    count = {"window_type": "count", "window_size_count": 1}
    define(jobs, "ids", source_queue_names=[queue], aggregates={"id": f"sum({queue}.id)"}, **count)
    jobs.drain()
    assert [row.data["id"] for row in jobs.rows("ids")] == [7]


def test_the_example_of_the_documentation(jobs: Jobs) -> None:
    page = (Path(__file__).parents[2] / "docs" / "streams.md").read_text()
    found = re.search(r"### Rows.*?-d '(.*?)' \|.*?```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    definition, shown = found.groups()
    jobs.api.push("orders", {"user": "anna", "amount": 12.5}, {"user": "ben", "amount": 3})
    made = responded(jobs.api.post("/api/v1/stream/define", msgspec.json.decode(definition)), 201)
    assert f"{made['queue']} {made['statement']}" == " ".join(shown.split())


REFUSED: list[tuple[Json, str]] = [
    ({"output": "tables"}, "output must be windows or rows"),
    ({"aggregates": {"total": "sum(data.amount)"}}, "CAST(data.amount AS DOUBLE)"),
    ({"aggregates": {"total": "summ(data.n)"}}, "aggregates.total: "),
    ({"aggregates": {"window_end": "count(*)"}}, "aggregates: two columns are named window_end"),
    ({"key": ["data.user"], "aggregates": {"user": "count(*)"}}, "aggregates.user: two columns are named"),
    ({"columns": {"net": "sum(data.n)"}}, "columns.net: the aggregate SUM is not allowed in columns"),
    ({"columns": {"net": "data.n"}}, "columns.net: no expression uses it"),
    ({"columns": {"net": "data.n"}, "where": "net"}, "where: "),
    ({"source_queue_names": ["no such queue"]}, "source_queue_names: there is no stream, source or queue"),
    ({"source_queue_names": ["windows:a/b"]}, "source_queue_names: windows:a/b is a window queue"),
    ({"idle_timeout_ms": 5000}, "idle_timeout_ms: idle_timeout does not apply to this query"),
    ({"emit_empty": True, "emit": "changes"}, "emit_empty applies only to final"),
    ({"window_type": "session", "window_gap_ms": 5, "emit": "changes"}, "emit: EMIT CHANGES is not"),
    ({"window_type": "sliding"}, "window_slide_ms is required"),
    ({"name": "a.b"}, "name (a.b) must not contain a dot with output rows"),
    ({"ordered": False}, "ordered must be true with output rows"),
    ({"window_lease_timeout_ms": 1000}, "window_lease_timeout_ms has no meaning with output rows"),
    ({"reset": True}, "reset is not available with output rows: delete the job"),
    ({"start": "soon"}, "start"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "wanted"), REFUSED, ids=lambda value: str(value)[:50])
def test_wrong_definitions_are_refused_with_the_name_of_the_field(
    jobs: Jobs, fields: Json, wanted: str
) -> None:
    push(jobs)
    assert wanted in reason(jobs, **fields)
    assert jobs.api.read("/api/v1/jobs")["jobs"] == []


def test_an_empty_queue_and_a_taken_name_are_refused(jobs: Jobs) -> None:
    jobs.api.configure(jobs.name("orders"))
    assert reason(jobs).startswith(f"source_queue_names: the queue {jobs.name('orders')} is empty")
    push(jobs)
    jobs.api.push(jobs.name("totals"), 1)
    assert reason(jobs).startswith(f"name: the queue {jobs.name('totals')} already exists")
