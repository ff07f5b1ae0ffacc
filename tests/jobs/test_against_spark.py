"""Final results of jobs are those of Spark's own batch query over the same records."""

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import msgspec
import polars as pl
import pytest

from tests.jobs.system import Jobs
from tests.sql.judge import Judge

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
SCHEMA = (
    "create stream {s} (k string, g bigint, n bigint, x double, d decimal(10, 2), t string, at timestamp)"
    " with (queue = '{q}');"
)
TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "k": pl.String, "g": pl.Int64, "n": pl.Int64, "x": pl.Float64, "d": pl.Decimal(10, 2), "t": pl.String,
    "at": pl.Datetime("us", "UTC"),
}  # fmt: skip
AGGREGATES = {
    "c": "COUNT(*)", "cn": "COUNT(n)", "cd": "COUNT(DISTINCT t)", "s": "SUM(n)", "sx": "SUM(x)",
    "sd": "SUM(d)",
    "a": "AVG(n)", "ad": "AVG(d)", "lo": "MIN(x)", "hi": "MAX(t)", "v": "VAR_SAMP(n)", "vp": "VAR_POP(x)",
    "sp": "STDDEV_POP(n)", "ss": "STDDEV_SAMP(x)", "m": "MEDIAN(n)", "p": "PERCENTILE(x, 0.9)",
    "f": "SUM(n) FILTER (WHERE x > 0)", "lb": "MIN_BY(t, n * 1000000 + g)",
    "hb": "MAX_BY(t, n * 1000000 + g)",
}  # fmt: skip
#: In log order, which Spark knows from the column `number`.
BY_ORDER = {
    "ft": ("FIRST(t)", "MIN_BY(t, number)"),
    "ln": ("LAST(n)", "MAX_BY(n, number)"),
    "li": ("LAST(n) IGNORE NULLS", "MAX_BY(n, number) FILTER (WHERE n IS NOT NULL)"),
}
WINDOWS = {
    "tumbling": ("TUMBLING(at, 1m)", "window(at, '1 minute')"),
    "sliding": ("SLIDING(at, 90s, 30s)", "window(at, '90 seconds', '30 seconds')"),
    "session": ("SESSION(at, 20s)", "session_window(at, '20 seconds')"),
}
KEYS = {"one": ["k"], "two": ["k", "g"], "none": []}
SMALL = {("tumbling", "two"), ("sliding", "none"), ("session", "one")}


def records(seed: int, count: int) -> list[dict[str, Any]]:
    """Records of some keys, in disorder, with gaps between them."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        at = BEGIN + timedelta(
            seconds=number * 2 + chance.choice([0, 0, 5, -40, 3, -10]), microseconds=number
        )
        found.append(
            {
                "k": chance.choice(["a", "b", "", "[x", None, "ü"]),
                "g": chance.choice([1, 2, None]),
                "n": chance.choice([None, chance.randint(-(10**6), 10**6)]),
                "x": chance.choice([None, chance.randint(-4000, 4000) / 4, 0.0]),
                "d": chance.choice([None, chance.randint(-(10**6), 10**6) / 100]),
                "t": chance.choice(["x", "y", "zebra", "", None]),
                "at": max(at, BEGIN).isoformat(),
            }
        )
    return found


def ends(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A record of every key that seals all its windows; in a window of its own."""
    late = (BEGIN + timedelta(hours=5)).isoformat()
    keys = {(record["k"], record["g"]) for record in found}
    return [
        {"k": k, "g": g, "n": None, "x": None, "d": None, "t": None, "at": late}
        for k, g in sorted(keys, key=str)
    ]


def value(found: Any) -> Any:
    """A value as both sides can be compared: numbers as doubles, times as text."""
    if isinstance(found, datetime):
        return found.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"
    if found is None or isinstance(found, str | bool):
        return found
    return float(found)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("window", WINDOWS)
def test_final_windows_are_those_of_spark(
    jobs: Jobs, judge: Judge, window: str, keys: str, full_size: bool
) -> None:
    if not full_size and (window, keys) not in SMALL:
        pytest.skip("only at full size")
    ours, sparks = WINDOWS[window]
    names = KEYS[keys]
    columns = ", ".join([*names, *(f"{call} AS {name}" for name, call in AGGREGATES.items())])
    by_order = [", ".join(f"{calls[side]} AS {name}" for name, calls in BY_ORDER.items()) for side in (0, 1)]
    group = f" GROUP BY {', '.join(names)}" if names else ""
    jobs.run(
        SCHEMA
        + f"create stream {{t}} as select {columns}, {by_order[0]}, window_start AS ws, window_end AS we"
        f" from {{s}} where t is null or t <> 'zebra'{group} window {ours}"
        " with (keep = '1d', idle_timeout = '1h')"
    )
    found = records(crc32(f"{window} {keys}".encode()) % 1000, 300)
    chance = random.Random(5)
    rest = [*found, *ends(found)]
    while rest:
        size = chance.randint(1, 80)
        jobs.push("q", rest[:size])
        rest = rest[size:]
        if chance.random() < 0.7:
            jobs.drain()
    jobs.drain()
    replaced = {
        each for row in jobs.rows("t") for each in msgspec.json.decode(row.headers.get("_replaces", "[]"))
    }
    kept = {
        (*(row.data[name] for name in names), row.data["ws"], row.data["we"]): row.data
        for row in jobs.rows("t")
        if row.id.rpartition(":r")[0] not in replaced
    }
    frame = pl.DataFrame(found, schema_overrides={"at": pl.String}).select(
        *(pl.col(name).cast(TYPES[name]) for name in ("k", "g", "n", "x", "t")),
        pl.col("d").cast(pl.Decimal(10, 2)),
        pl.col("at").str.to_datetime(time_unit="us", time_zone="UTC"),
        pl.int_range(pl.len(), dtype=pl.Int64).alias("number"),
    )
    grouping = ", ".join([*names, sparks])
    part = "session_window" if window == "session" else "window"
    wanted = judge.query(
        f"select {columns}, {by_order[1]}, {part}.start AS ws, {part}.end AS we from records"
        f" where t is null or t <> 'zebra' group by {grouping}",
        frame,
    )
    expected = {(*(row[name] for name in names), value(row["ws"]), value(row["we"])): row for row in wanted}
    assert set(kept) == set(expected)
    for place, row in expected.items():
        for name in (*AGGREGATES, *BY_ORDER):
            assert same(value(row[name]), value(kept[place][name])), (
                place,
                name,
                row[name],
                kept[place][name],
            )
