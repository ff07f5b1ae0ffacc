"""Rows over files equal Spark's batch result: the records of the queue's test, read from files."""

import msgspec
import polars as pl
import pytest

from tests.external.files import Files
from tests.jobs.test_against_spark import AGGREGATES, KEYS, SMALL, TYPES, WINDOWS, records, same, value
from tests.sql.judge import Judge

COLUMNS = "k string, g bigint, n bigint, x double, d decimal(10, 2), t string, at timestamp"


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("window", WINDOWS)
def test_final_windows_over_files_are_those_of_spark(
    files: Files, judge: Judge, window: str, keys: str, full_size: bool
) -> None:
    if not full_size and (window, keys) not in SMALL:
        pytest.skip("only at full size")
    ours, sparks = WINDOWS[window]
    names = KEYS[keys]
    columns = ", ".join([*names, *(f"{call} AS {name}" for name, call in AGGREGATES.items())])
    group = f" GROUP BY {', '.join(names)}" if names else ""
    found = records(len(window) + len(keys), 300)
    for number in range(3):
        files.write(f"{number}.json", *found[number * 100 : number * 100 + 100])
    files.run(
        files.source(COLUMNS)
        + f"create stream {{t}} as select {columns}, window_start AS ws, window_end AS we from {{s}}"
        f" where t is null or t <> 'zebra'{group} window {ours} with (keep = '1d')"
    )
    files.run_job("t", max_rows=40, max_bytes=3000)
    rows = files.rows("t")
    replaced = {each for row in rows for each in msgspec.json.decode(row.headers.get("_replaces", "[]"))}
    kept = {
        (*(row.data[name] for name in names), row.data["ws"], row.data["we"]): row.data
        for row in rows
        if row.id.rpartition(":r")[0] not in replaced
    }
    frame = pl.DataFrame(found, schema_overrides={"at": pl.String}).select(
        *(pl.col(name).cast(TYPES[name]) for name in ("k", "g", "n", "x", "t")),
        pl.col("d").cast(pl.Decimal(10, 2)),
        pl.col("at").str.to_datetime(time_unit="us", time_zone="UTC"),
    )
    part = "session_window" if window == "session" else "window"
    wanted = judge.query(
        f"select {columns}, {part}.start AS ws, {part}.end AS we from records"
        f" where t is null or t <> 'zebra' group by {', '.join([*names, sparks])}",
        frame,
    )
    expected = {(*(row[name] for name in names), value(row["ws"]), value(row["we"])): row for row in wanted}
    assert set(kept) == set(expected)
    for place, row in expected.items():
        for name in AGGREGATES:
            assert same(value(row[name]), value(kept[place][name])), (place, name, row[name])
