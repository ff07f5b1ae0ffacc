"""Plans run on payloads without ever raising: each record gives a row, an error, or nothing."""

from time import perf_counter

import msgspec
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queenspark.sql import Plan, Relation, SqlError, parse, parse_one, plan_query
from queenspark.sql.planning.catalogue import OneRelation
from queenspark.sql.running import MESSAGE, MessageDecoder, RecordStage, RowStage, engine_spec
from queenspark.sql.running.rows import DEAD, ROW
from queenspark.sql.statements import CreateStream, Explain, Select
from queenspark.sql.types import BIGINT, JSON
from queenspark.store.names import ids_fault
from queenspark.windows import Engine
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
    "select max(ts) as m, count(*) from events where ts > 5 window tumbling(ts, 1m)",
    "select ts, count(*) from events group by ts window tumbling(ts, 1m)",
    "select max(data.ts) as m from events window session(data.ts, 30s)",
    "select sum(cast(city as int)) filter (where city rlike '^[0-9]+$') as s, count(*) from orders",
    "select collect_list(tags) as l, count(distinct raw) as n from orders window tumbling(1m)",
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


def messages_of(payloads: list[str]) -> pl.DataFrame:
    """Messages of a queue with these payloads."""
    count = len(payloads)
    columns = {
        "queue_id": 1, "txid": 1, "id": pl.int_range(count), "created_us": 1_770_000_000_000_000,
        "queue": "orders", "partition": "p", "transaction_id": "t", "headers": None,
    }  # fmt: skip
    return (
        pl.DataFrame({"payload": payloads}, schema={"payload": pl.String})
        .with_columns(
            **{
                name: value if isinstance(value, pl.Expr) else pl.lit(value)
                for name, value in columns.items()
            }
        )
        .select(pl.col(name).cast(kind) for name, kind in MESSAGE.items())
    )


def run(found: Plan, payloads: list[str]) -> None:
    """Run a plan on payloads, through the window engine where it has one, up to its rows."""
    taken = RecordStage(found, 1, 1).run(MessageDecoder([found]).decode(messages_of(payloads)))
    assert dict(taken.dead.schema) == {name: kind() for name, kind in DEAD.items()}
    spec = engine_spec(found)
    if spec is None:
        assert dict(taken.rows.schema) == {name: kind() for name, kind in ROW.items()}
        return
    named = {"stream": pl.lit(1, dtype=pl.Int64), "version": pl.lit(1, dtype=pl.Int32)}
    records = taken.records.rename({"queue_id": "source"}).with_columns(**named)
    result = Engine({(1, 1): spec}).advance(None, [records], 2**60)
    assert not result.failed
    for frame in result.rows:
        stage = RowStage(found, 1, 1)
        if found.kind == "rows":
            own = records.drop("key", "source", *named, "created_us", "event_us")
            given = stage.of_buffers(frame.join(own, on=["txid", "id"]))
        else:
            given = stage.of_windows(frame)
        assert set(ROW) <= set(given.rows.columns)
        assert all(isinstance(msgspec.json.decode(text), dict) for text in given.rows["payload"])


@pytest.mark.parametrize("text", QUERIES)
def test_a_plan_runs_on_any_payload(text: str) -> None:
    found = plan(text)
    for payloads in (_PAYLOADS, _PAYLOADS[1:2], []):
        run(found, payloads)


@pytest.mark.parametrize("emit", ["final", "changes"])
def test_ids_of_rows_are_short_enough_for_any_key(emit: str) -> None:
    found = plan(f"select city, count(*) as n from orders group by city window tumbling(1m) emit {emit}")
    messages = messages_of([msgspec.json.encode({"city": "x" * size}).decode() for size in range(1, 600)])
    last = {"txid": pl.lit(2**62, dtype=pl.Int64), "id": pl.col("id") + 2**62}
    taken = RecordStage(found, 1, 1).run(MessageDecoder([found]).decode(messages.with_columns(**last)))
    spec = engine_spec(found)
    assert spec is not None
    named = {"stream": pl.lit(1, dtype=pl.Int64), "version": pl.lit(1, dtype=pl.Int32)}
    records = taken.records.rename({"queue_id": "source"}).with_columns(**named)
    (rows,) = Engine({(1, 1): spec}).advance(None, [records], 2**60).rows
    ids = RowStage(found, 1, 1).of_windows(rows).rows["transaction_id"]
    assert ids.n_unique() == 599
    assert ids_fault(ids) is None


def test_a_filter_keeps_records_whose_argument_fails() -> None:
    found = plan(
        "select sum(cast(city as int)) filter (where city rlike '^[0-9]+$') as s, count(*) as c from orders"
        " group by id"
    )
    messages = messages_of(['{"id": 1, "city": "7"}', '{"id": 1, "city": "Rome"}', '{"id": 1}'])
    taken = RecordStage(found, 1, 1).run(MessageDecoder([found]).decode(messages))
    assert taken.dead.is_empty()
    assert taken.records.height == 3


def test_an_argument_that_fails_without_its_filter_makes_the_record_dead() -> None:
    found = plan(
        "select sum(cast(city as int)) filter (where id > 1) as s, max(cast(city as int)) as m from orders"
    )
    messages = messages_of(['{"id": 1, "city": "7"}', '{"id": 1, "city": "Rome"}'])
    taken = RecordStage(found, 1, 1).run(MessageDecoder([found]).decode(messages))
    assert taken.dead["id"].to_list() == [1]


def test_the_time_of_a_window_below_a_declared_column_named_data() -> None:
    relation = Relation("q", "schema", columns={"data": JSON, "at": BIGINT})
    query = parse_one("select count(*) from q window tumbling(data.at, 1m)")
    assert isinstance(query, Select)
    found = plan_query(query, OneRelation(relation))
    messages = messages_of(['{"at": 1000, "data": {"at": 61000}}'])
    taken = RecordStage(found, 1, 1).run(MessageDecoder([found]).decode(messages))
    assert taken.records["event_us"].to_list() == [61_000_000]


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


def _payloads(text: str, cities: list[str]) -> tuple[list[str], list[str]]:
    """The payloads and the dead reasons of a query without state, over orders in these cities."""
    given = [msgspec.json.encode({"city": city}).decode() for city in cities]
    found = plan(text)
    taken = RecordStage(found, 1, 1).run(MessageDecoder([found]).decode(messages_of(given)))
    return taken.rows["payload"].to_list(), taken.dead["reason"].to_list()


_NO_JSON = ["a", '1,"admin":true', "NaN", "", "01", '{"a":1} x', "[1,]", '"\n"']
_JSON = ["null", "1.50", "12345678901234567890123.4500", '{"a": [1, "x"]}', ' "b"\n']


def test_text_cast_to_json_is_one_json_value() -> None:
    payloads, reasons = _payloads("select cast(city as json) as z from orders", _NO_JSON + _JSON)
    assert payloads == [f'{{"z":{text.strip()}}}' for text in _JSON]
    assert reasons == [f"'{text}' is not a JSON" for text in _NO_JSON]


def test_text_that_is_nested_too_deeply_is_not_cast_to_json() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    payloads, reasons = _payloads("select cast(city as json) as z from orders", [deep, "1"])
    assert payloads == ['{"z":1}']
    assert reasons == [f"'{deep[:100]}' is not a JSON"]


@pytest.mark.parametrize(
    "expression",
    [
        "repeat(repeat(repeat(city, 1000), 1000), 1000)",
        "replace(replace(repeat(city, 1000), 'a', repeat(city, 1000)), 'a', repeat(city, 1000))",
    ],
)
def test_a_string_does_not_grow_without_end(expression: str) -> None:
    payloads, reasons = _payloads(f"select {expression} as z from orders", ["a" * 20, ""])
    assert payloads == ['{"z":""}']
    assert reasons == ["the string would have more than 10,000,000 bytes"]


def test_text_tried_to_be_cast_to_json_is_one_json_value_or_null() -> None:
    payloads, reasons = _payloads("select try_cast(city as json) as z from orders", _NO_JSON + _JSON)
    assert payloads == ['{"z":null}'] * len(_NO_JSON) + [f'{{"z":{text.strip()}}}' for text in _JSON]
    assert reasons == []
