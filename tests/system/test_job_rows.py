"""Rows of EMIT CHANGES and OVER through the whole system, push, Spark, pop: they are those of the oracle."""

import random
from collections import Counter
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from tests.system.system import System, microseconds
from tests.windows.oracle import Aggregate, Record, Row, Spec, Tick, expected_output
from tests.wire.api import Api
from tests.wire.sql import Sql

BEGIN_MS = 1_769_860_800_000
SECOND = 1_000_000
SUM = Aggregate("sum", "n", "s")
HOUR = 3600 * SECOND


class Case(NamedTuple):
    """A query, and the same as the oracle understands it."""

    query: str
    spec: Spec


def cases(chance: random.Random) -> dict[str, Case]:
    """One query of each kind, with random sizes."""
    size, grace = chance.randint(2, 20), chance.randint(0, 10)
    slide = chance.randint(1, 4)
    rows, lag = chance.randint(1, 6), chance.randint(1, 3)
    count, step = chance.randint(1, 5), chance.randint(1, 5)
    late = chance.choice(("process", "drop"))
    clock: dict[str, Any] = {"clock": "event", "grace_us": grace * SECOND, "idle_us": HOUR, "late": late}
    options = f"with (grace = '{grace}s', idle_timeout = '1h', keep = '1d', late = '{late}')"
    select = (
        "select user, window_start as b, window_end as e, count(*) as c, sum(n) as s from {s} group by user"
    )
    changes: dict[str, Any] = {"emission": "changes", "aggregates": (SUM,)}
    return {
        "tumbling": Case(
            f"{select} window tumbling(at, {size}s) emit changes {options}",
            Spec(kind="tumbling", duration_us=size * SECOND, **clock, **changes),
        ),
        "sliding": Case(
            f"{select} window sliding(at, {slide * 3}s, {slide}s) emit changes {options}",
            Spec(kind="sliding", duration_us=3 * slide * SECOND, slide_us=slide * SECOND, **clock, **changes),
        ),
        "counts": Case(
            "select user, count(*) as c, sum(n) as s from {s} group by user"
            f" window count({max(count, step)}, {step}) emit changes",
            Spec(kind="count", size=max(count, step), step=step, **changes),
        ),
        "groups": Case(
            "select user, count(*) as c, sum(n) as s from {s} group by user", Spec(kind="group", **changes)
        ),
        "buffers": Case(
            f"select user, count(*) over (rows window buffer {rows} rows partition by user) as c,"
            f" sum(n) over (rows window buffer {rows} rows partition by user) as s,"
            f" lag(n, {lag}) over (rows window buffer {max(rows, lag + 1)} rows partition by user) as l"
            " from {s}",
            Spec(
                kind="rows",
                size=max(rows, lag + 1),
                emission="changes",
                aggregates=(
                    SUM._replace(rows=rows),
                    Aggregate("count", None, "c", rows=rows),
                    Aggregate("lag", "n", "l", parameter=lag),
                ),
            ),
        ),
    }


def disordered(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Records of four users, most of them a little out of order, some far."""
    return [
        {
            "user": chance.choice(["ann", "ben", "eve", None]),
            "n": chance.choice([None, *range(-5, 20)]),
            "at": BEGIN_MS + 300 * number + chance.choice([0, 0, 400, -900, -6_000, -30_000]),
        }
        for number in range(count)
    ]


def expected(case: Case, stream: int, records: list[Record]) -> Counter[tuple[Any, ...]]:
    """The rows that the oracle sees."""
    own = [Record(stream, *_fields(record)) for record in records]
    timed = case.spec.duration_us is not None
    rows = expected_output({(stream, 1): case.spec}, [*own, Tick(0)]).rows
    return Counter(_seen(row, timed=timed) for row in rows)


def _fields(record: Record) -> tuple[Any, ...]:
    return (
        record.key,
        record.txid,
        record.id,
        record.created_us,
        record.event_us,
        record.values,
        record.source,
    )


def _seen(row: Row, *, timed: bool) -> tuple[Any, ...]:
    values = row.aggregates
    window = (row.start_us, row.end_us) if timed else (None, None)
    return row.key, *window, values.get("c", row.count), values["s"], values.get("l"), (row.txid, row.id)


@pytest.mark.together
@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)]
)
def test_changes_and_rows_are_those_of_the_oracle(system: System, seed: int) -> None:
    with Api(str(system.api.http.base_url), system.database_url) as api:
        compare(system, Sql(api), random.Random(seed))


def compare(system: System, sql: Sql, chance: random.Random) -> None:
    """Push random records, and pop the rows of random queries over them."""
    tag = uuid4().hex[:8]
    sql(f"create stream s_{tag} (user string, n bigint, at timestamp) with (queue = 'q_{tag}')")
    chosen = cases(chance)
    records = disordered(chance, 150)

    def push(some: list[dict[str, Any]]) -> None:
        while some:
            size = chance.randint(1, 25)
            system.api.push(f"q_{tag}", *some[:size], partition=f"p{chance.randrange(3)}")
            some = some[size:]

    push(records[:60])
    for name, case in chosen.items():
        sql(f"create stream {name}_{tag} as " + case.query.format(s=f"s_{tag}"))
    push(records[60:])
    log = [
        Record(
            0,
            "[null]" if data["user"] is None else data["user"],
            txid,
            id_,
            0,
            data["at"] * 1000,
            {"n": data["n"]},
        )
        for txid, id_, data in system.run(
            "SELECT m.txid, m.id, m.payload::jsonb FROM queenspark.messages m JOIN queenspark.queues q"
            " ON q.id = m.queue_id WHERE q.name = %s ORDER BY m.txid, m.id",
            f"q_{tag}",
        )
    ]
    assert len(log) == len(records)
    for name, case in chosen.items():
        wanted = expected(case, sql.stream(f"{name}_{tag}")[0], log)
        assert len(wanted) >= 50, name
        popped = system.api.drain(f"{name}_{tag}", wanted.total())
        assert system.api.empty(f"{name}_{tag}")
        found: Counter[tuple[Any, ...]] = Counter()
        last: dict[str, tuple[int, int]] = {}
        for message in popped:
            data, key = message["data"], message["partition"]
            txid, _, id_ = message["transactionId"].rpartition(":")[2].partition("-")
            position = (int(txid), int(id_))
            assert last.get(key, (0, 0)) <= position, f"{name}: rows of {key} are not in the order of the log"
            last[key] = position
            start, end = (microseconds(data[each]) if data.get(each) else None for each in ("b", "e"))
            found[key, start, end, data["c"], data["s"], data.get("l"), position] += 1
        assert found == wanted, name
