"""Plans: names, kinds, columns and types; and refusals that say where and why."""

from collections.abc import Iterable

import polars as pl
import pytest

from queenspark.sql import SqlError, parse_one
from queenspark.sql.payload import PayloadDecoder
from queenspark.sql.planning import Plan, Relation, plan_query, plan_stream
from queenspark.sql.statements import CreateStream, Select
from queenspark.sql.types import BIGINT, DOUBLE, JSON, STRING, TIMESTAMP, SqlType, array, decimal
from queenspark.windows import WindowSpec
from tests.sql.pairs import pairs

_ORDERS = {
    "id": BIGINT,
    "city": STRING,
    "amount": decimal(10, 2),
    "at": TIMESTAMP,
    "tags": array(STRING),
    "raw": JSON,
    "price": DOUBLE,
}
_TOTALS = {"city": STRING, "total": DOUBLE}
_PATHS: dict[tuple[str | int, ...], SqlType] = {
    ("userId",): BIGINT,
    ("address",): JSON,
    ("address", "city"): STRING,
    ("ts",): BIGINT,
    ("my.name",): STRING,
}
_RELATIONS = [
    Relation("orders", "schema", columns=_ORDERS),
    Relation("events", "queue", paths=_PATHS),
    Relation("totals", "stream", columns=_TOTALS, updating=True, revisions=True, has_event_time=True),
    Relation("latest", "stream", columns=_TOTALS, updating=True, has_event_time=True),
    Relation("dropped", "stream", columns=_TOTALS, has_event_time=True, delay_us=15_000_000),
    Relation("clicks", "kafka", columns={"url": STRING, "at": TIMESTAMP}),
    Relation("visits", "kafka", columns={"url": STRING, "at": TIMESTAMP}, key_in_one_partition=True),
    Relation("history", "files", columns=_TOTALS, bounded=True),
]  # fmt: skip


class Relations:
    """The relations above."""

    def find(self, name: str) -> Relation | None:
        """The relation of that name."""
        return next((relation for relation in _RELATIONS if relation.name == name), None)

    def names(self) -> Iterable[str]:
        """All names."""
        return [relation.name for relation in _RELATIONS]


def plan(text: str | Select | CreateStream) -> Plan:
    """The plan of a query over the relations above."""
    statement = parse_one(text) if isinstance(text, str) else text
    if isinstance(statement, CreateStream):
        return plan_stream(statement, Relations())
    assert isinstance(statement, Select)
    return plan_query(statement, Relations())


@pytest.mark.parametrize(("marked", "expected"), pairs("refusals.sql"))
def test_a_refusal_says_where_and_why(marked: str, expected: str) -> None:
    before = marked[: marked.index("^")]
    with pytest.raises(SqlError) as caught:
        plan(marked.replace("^", "", 1))
    assert caught.value.message == expected
    assert (caught.value.line, caught.value.column) == (1, len(before) + 1)


@pytest.mark.parametrize(
    ("text", "kind", "emission", "updating"),
    [
        ("select id from orders where amount > 1", "stateless", "changes", False),
        ("select total from totals", "stateless", "changes", True),
        ("select total from totals where _revision = 1 and total > 5", "stateless", "changes", False),
        ("select lag(id) over (rows window buffer 5 rows) from orders", "rows", "changes", False),
        ("select count(*) from orders window count(10)", "window", "final", False),
        ("select count(*) from orders window count(10) emit changes", "window", "changes", True),
        ("select count(*) from orders window rows(10)", "window", "changes", False),
        ("select count(*) from orders window tumbling(1m)", "window", "final", True),
        ("select count(*) from orders window tumbling(1m) with (late = 'drop')", "window", "final", False),
        ("select count(*) from orders window session(at, 1m)", "window", "final", True),
        ("select count(*) from orders window sliding(5m, 1m) emit changes", "window", "changes", True),
        ("select id, count(*) from orders group by id", "unwindowed", "changes", True),
        ("select city, count(*) from history group by city emit final", "unwindowed", "final", False),
        ("select count(*) from totals where _revision = 1 group by city", "unwindowed", "changes", True),
        ("select last(url) from visits window tumbling(at, 1m)", "window", "final", True),
    ],
)
def test_the_kind_of_a_query(text: str, kind: str, emission: str, updating: bool) -> None:
    found = plan(text)
    assert (found.kind, found.emission, found.updating) == (kind, emission, updating)


@pytest.mark.parametrize(("text", "expected"), pairs("columns.sql"))
def test_columns_and_their_types(text: str, expected: str) -> None:
    assert ", ".join(f"{name} {kind}" for name, kind in plan(text).columns.items()) == expected.strip()


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("window tumbling(1m)", WindowSpec(kind="tumbling", duration_us=60_000_000)),
        ("window tumbling(at, 1m) with (grace = 5s, late = 'drop', emit_empty = true)",
         WindowSpec(kind="tumbling", duration_us=60_000_000, clock="event", grace_us=5_000_000, late="drop",
                    emit_empty=True)),
        ("window sliding(at, 5m, 1m) emit changes with (idle_timeout = 30s, keep = 1h)",
         WindowSpec(kind="sliding", duration_us=300_000_000, slide_us=60_000_000, clock="event",
                    idle_us=30_000_000, keep_us=3_600_000_000, emission="changes")),
        ("window session(at, 30s)", WindowSpec(kind="session", gap_us=30_000_000, clock="event")),
        ("window count(100, 50)", WindowSpec(kind="count", size=100, step=50)),
        ("window count(at, 100)", WindowSpec(kind="count", size=100, clock="event")),
        ("window rows(5)", WindowSpec(kind="rows", size=5, emission="changes")),
        ("window rows(at, 5) emit changes",
         WindowSpec(kind="rows", size=5, emission="changes", clock="event")),
        ("group by id with (ttl = 1h)", WindowSpec(kind="group", emission="changes", ttl_us=3_600_000_000)),
    ],
)  # fmt: skip
def test_windows_become_specs_of_the_engine(text: str, spec: WindowSpec) -> None:
    assert plan(f"select count(*) from orders {text}").window == spec


def test_the_buffer_is_as_large_as_the_largest() -> None:
    buffers = "avg(id) over (rows window buffer 5 rows), max(id) over (rows window buffer 9 rows)"
    found = plan(f"select {buffers} from orders")
    assert found.window == WindowSpec(kind="rows", size=9, emission="changes")
    assert [aggregate.rows for aggregate in found.aggregates] == [5, 9]


def test_a_job_over_rows_of_another_waits_for_them() -> None:
    found = plan("select count(*) from dropped window tumbling(1m)")
    assert found.window is not None
    assert (found.window.clock, found.window.grace_us) == ("event", 15_000_000)
    assert found.window.idle == 25_000_000
    reason = "the rows of dropped come that long after their time"
    assert found.warnings == (f"grace defaults to 15s: {reason}", f"idle_timeout defaults to 25s: {reason}")
    options = "grace = '1s', idle_timeout = '20s'"
    assert not plan(f"select count(*) from dropped window tumbling(1m) with ({options})").warnings


def test_equal_aggregates_are_shared_under_any_name() -> None:
    found = plan(
        "select sum(o.amount) as a, SUM(Amount) + 1 as b from orders o "
        "group by City having sum(amount) > 1 and b < 5"
    )
    assert [aggregate.name for aggregate in found.aggregates] == ["SUM(amount)"]
    assert [name for name, _ in found.records.key] == ["key:city"]
    assert [name for name, _ in found.records.inputs] == ["in:amount"]


def test_a_path_is_a_time_in_milliseconds_or_iso() -> None:
    found = plan("select count(*) from events window tumbling(ts, 1m)")
    assert [(field.steps, field.type) for field in found.records.fields] == [(("ts",), TIMESTAMP)]


def test_only_the_fields_that_are_used_are_decoded() -> None:
    found = plan("select city, explode(tags) as tag from orders where amount > 1 and _partition = 'x'")
    assert {field.steps for field in found.records.fields} == {("city",), ("tags",), ("amount",)}
    assert found.records.pseudo == ("_partition",)


def test_a_stateless_plan_runs_on_payloads() -> None:
    found = plan(
        "select id, upper(city) as c, case when price <> 0 then 1 / price end as r "
        "from orders where amount > 1.5"
    )
    payloads = [
        '{"id": 1, "city": "rome", "amount": 2.50, "price": 4}',
        '{"id": 2, "city": "oslo", "amount": 1.5, "price": 0}',
        '{"id": 3, "city": "bern", "amount": 7, "price": 0}',
        '{"id": "x", "amount": 9}',
        '{"amount": "much"}',
    ]
    decoded = PayloadDecoder(found.records.fields).columns(pl.Series(payloads))
    frame = found.records.condition_program.apply(decoded)
    condition = found.records.condition
    assert condition is not None
    assert condition.error is not None
    frame = frame.with_columns(_pass=condition.value, _dead=condition.error)
    assert frame["_dead"].to_list()[:4] == [None] * 4
    assert frame["_dead"][4] == 'amount is "much", not a DECIMAL(10, 2); it would fit STRING'
    passed = frame.filter(pl.col("_dead").is_null() & pl.col("_pass"))
    rows = found.rows.program.apply(passed).select(
        *(value.value.alias(name) for name, _, value in found.rows.columns),
        *(value.error.alias(f"{name}!") for name, _, value in found.rows.columns if value.error is not None),
    )
    assert rows.select("id", "c", "r").rows() == [(1, "ROME", 0.25), (3, "BERN", None), (None, None, None)]
    assert rows["id!"].to_list() == [None, None, 'id is "x", not a BIGINT; it would fit STRING']
