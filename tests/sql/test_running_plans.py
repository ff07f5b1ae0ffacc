"""Plans run on payloads without ever raising: each record gives a row, an error, or nothing."""

from time import perf_counter

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queenspark.sql import Plan, SqlError, parse
from queenspark.sql.expressions import Compiled
from queenspark.sql.payload import PayloadDecoder
from queenspark.sql.planning.plan import EXPLODED
from queenspark.sql.planning.scope import PSEUDO
from queenspark.sql.statements import CreateStream, Explain, Select
from tests.sql.pairs import pairs
from tests.sql.test_fuzz import mutate
from tests.sql.test_planning import plan

QUERIES = [text for text, _ in pairs("columns.sql")] + [
    "select id, city from orders where amount > 10 and city like 'R%' with (partition_by = 'city')",
    "select o.id + 1 as n, upper(city) as c, raw.x.y, tags[0] from orders o where price is not null",
    "select case when price > 0 then amount / price else null end as r, coalesce(city, 'none') from orders",
    "select cast(raw as bigint), try_cast(city as double) as d, date_trunc('hour', at) as h from orders",
    "select city, sum(amount) as s, count(*) from orders group by city window tumbling(at, 1m) having s > 5",
    "select id % 7 as k, max(price) filter (where id > 0) from orders group by id % 7 emit changes",
    "select lag(amount, 2) over (rows window buffer 5 rows partition by city) as before from orders",
    "select userId, count(distinct address.city) as n from events group by userId window session(ts, 30s)",
    "select _partition, _headers.kind, greatest(id, 5), left(city, 3) from orders where id in (1, 2, null)",
]
_PAYLOADS = [
    "{}",
    '{"id": 1, "city": "Rome", "amount": 12.50, "price": 0, "at": "2026-01-31T12:00:00Z", "tags": ["a"]}',
    '{"id": -9223372036854775808, "city": "", "amount": -1, "price": 1e300, "at": 5, "raw": {"x": {"y": 1}}}',
    '{"id": "x", "city": 5, "amount": "much", "price": "NaN", "at": "soon", "tags": "a", "raw": 7}',
    "[]",
    "null",
    "17",
    '{"userId": 3, "address": {"city": "Oslo"}, "ts": 1769860800000}',
    '{"userId": 3.5, "address": 1, "ts": "x"}',
]


def run(found: Plan, payloads: list[str]) -> None:
    """Evaluate every expression of a plan."""
    records = found.records
    frame = pl.DataFrame({"row": range(len(payloads))}, schema={"row": pl.Int64})
    frame = frame.hstack(PayloadDecoder(records.fields).columns(pl.Series(payloads, dtype=pl.String)))
    for name in records.pseudo:
        kind = PSEUDO.get(name.lower())
        dtype = pl.Int64() if name == "_revision" else pl.String() if kind is None else kind.column
        frame = frame.with_columns(pl.lit(None, dtype=dtype).alias(name))
    frame = records.program.apply(frame)
    for _, compiled in (*records.key, *records.inputs):
        _evaluate(frame, compiled)
    for each in (records.condition, records.time):
        if each is not None:
            _evaluate(frame, each)
    rows = frame
    if found.kind in ("window", "unwindowed"):
        columns = {name: compiled.type.column for name, compiled in records.key}
        columns |= {aggregate.name: aggregate.type.column for aggregate in found.aggregates}
        columns |= {"window_start": pl.Datetime("us", "UTC"), "window_end": pl.Datetime("us", "UTC")}
        columns |= {"_count": pl.Int64(), "_revision": pl.Int64()}
        rows = pl.DataFrame({name: pl.Series([None, None], dtype=dtype) for name, dtype in columns.items()})
    for aggregate in found.aggregates:
        if aggregate.name not in rows.columns:
            rows = rows.with_columns(pl.lit(None, dtype=aggregate.type.column).alias(aggregate.name))
    rows = found.rows.program.apply(rows)
    if found.rows.explode is not None:
        _evaluate(rows, found.rows.explode)
        rows = rows.with_columns(found.rows.explode.value.alias(EXPLODED)).explode(EXPLODED)
    for column in found.rows.columns:
        _evaluate(rows, column.value)
        assert column.value.type == column.type
    if found.rows.having is not None:
        _evaluate(rows, found.rows.having)


def _evaluate(frame: pl.DataFrame, compiled: Compiled) -> None:
    error = pl.lit(None, dtype=pl.String) if compiled.error is None else compiled.error
    result = frame.with_columns(_value=compiled.value, _error=error)
    assert result["_value"].dtype == compiled.type.column
    assert result["_error"].dtype == pl.String


@pytest.mark.parametrize("text", QUERIES)
def test_a_plan_runs_on_any_payload(text: str) -> None:
    found = plan(text)
    for payloads in (_PAYLOADS, _PAYLOADS[1:2], []):
        run(found, payloads)


@given(st.sampled_from(QUERIES).flatmap(mutate))
def _check(text: str) -> None:
    try:
        statements = parse(text)
    except SqlError:
        return
    for statement in statements:
        query = statement.statement if isinstance(statement, Explain) else statement
        if isinstance(query, Select | CreateStream):
            try:
                found = plan(query)
            except SqlError:
                continue
            run(found, _PAYLOADS)


def test_mutated_queries_are_refused_or_run(full_size: bool) -> None:
    settings(
        max_examples=5_000 if full_size else 300,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )(_check)()


@pytest.mark.parametrize(
    "expression",
    [
        " % ".join(["id"] * 60),
        " + ".join(["id"] * 100),
        " OR ".join(f"id = {n}" for n in range(100)),
        "GREATEST(" + ", ".join(["price", "id"] * 30) + ")",
        "CASE " + " ".join(f"WHEN id = {n} THEN {n} % id" for n in range(100)) + " END",
        "COALESCE(" * 25 + "id" + ", 1 / id)" * 25,
        "ABS(" * 40 + "id" + ")" * 40,
        "SUBSTRING(" * 25 + "city" + ", 2)" * 25,
        " % ".join(["7"] * 100),
        "id IN (" + ", ".join(map(str, range(2_000))) + ")",
    ],
)
def test_the_cost_of_an_expression_follows_its_length(expression: str) -> None:
    before = perf_counter()
    run(plan(f"select {expression} as x from orders"), _PAYLOADS)
    assert perf_counter() - before < 20
