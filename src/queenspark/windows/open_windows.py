"""The open windows of a stream according to its log, for readers without the engine's state.

The clocks and windows are those of a step, but late records are not judged one at a time, which bounds the
work: one row for each record and each requested window that contains it. The result is the same, since a
window that is open now was open when its records arrived; only a session may also include a record that was
dropped as late.
"""

from __future__ import annotations

import msgspec
import polars as pl

from .clock import clock_of, closes_at
from .directory import Directory
from .grid import first_start, last_start, starts_between
from .layout import KEY, layout_of
from .membership import is_given_out
from .sessions import Sessions
from .spec import WindowSpec


def open_windows(
    spec: WindowSpec,
    records: pl.DataFrame,
    safe_us: int,
    *,
    most: int,
    from_us: int | None = None,
    until_us: int | None = None,
) -> pl.DataFrame:
    """Return the windows that these records leave open at a safe time: of each key the first `most` to end.

    Records are in log order and have `key`, `created_us` and `time_us`, the time used for windowing. Windows
    have to start at or after from_us and before until_us. They are sorted by the first record of their key,
    then by time, and have `key`, `start_us`, `end_us`, `records` (a count), `newest_us` (the largest time of
    the key), `pushed_us` (the largest creation time of the key) and `due_us`: the safe time that seals the
    window if no more records of its key arrive.
    """
    spec = msgspec.structs.replace(spec, aggregates=())
    names = records.select("key").unique(maintain_order=True).with_columns(k=pl.int_range(pl.len()))
    rows = _part_rows(records.join(names, on="key", maintain_order="left"))
    clock = clock_of(spec)
    clock.pass_(clock.judge(rows))
    clock.tick(pl.DataFrame({"g": [0], "safe": [safe_us]}))
    if spec.kind == "session":
        found = _sessions(spec, rows, clock.marks())
    else:
        found = _on_grid(spec, rows, clock.marks(), most, from_us)
    of_key = rows.group_by(KEY).agg(newest_us=pl.col("t").max(), pushed_us=pl.col("created").max())
    limits = {name: pl.lit(at, dtype=pl.Int64) for name, at in (("from_us", from_us), ("until_us", until_us))}
    return (
        found.select("k", start_us="start", end_us="end", records="count")
        .with_columns(**limits)
        .filter(is_given_out())
        .sort("k", "start_us")
        .group_by(KEY, maintain_order=True)
        .head(most)
        .join(of_key, on=KEY, maintain_order="left")
        .join(names, on=KEY, maintain_order="left")
        .select(
            "key", "start_us", "end_us", "records", "newest_us", "pushed_us",
            due_us=closes_at(spec, pl.col("end_us"), pl.col("pushed_us")),
        )
    )  # fmt: skip


def _part_rows(records: pl.DataFrame) -> pl.DataFrame:
    """Records in log order as part rows (layout.py); their row numbers serve as positions."""
    row = pl.int_range(pl.len())
    return records.select(
        "k", source=pl.lit(0), created="created_us", t="time_us", pos=row, count=pl.lit(1, dtype=pl.Int64),
        first=row, last=row,
    )  # fmt: skip


def _sessions(spec: WindowSpec, rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    sessions = Sessions(layout_of(spec), Directory(None, None), None, None)
    sessions.add(rows)
    sessions.take_due(marks)
    assert sessions.open is not None
    return sessions.open


def _on_grid(
    spec: WindowSpec, rows: pl.DataFrame, marks: pl.DataFrame, most: int, from_us: int | None
) -> pl.DataFrame:
    """The first open windows of each record include the first open windows of its key.

    All windows from the first open one of a record to any of its others contain the record.
    """
    if "g" in marks.columns:
        rows = rows.with_columns(closed=pl.lit(marks["closed"][0], dtype=pl.Int64))
    else:
        rows = rows.join(marks, on=KEY)
    # A window that starts at `from_us` or later ends after this time.
    after = pl.max_horizontal(
        "t", "closed", pl.lit(None if from_us is None else from_us + spec.duration - 1, dtype=pl.Int64)
    )
    reach = min(most - 1, spec.duration // spec.slide) * spec.slide
    spans = rows.with_columns(first_us=first_start(spec, after)).with_columns(
        last_us=pl.min_horizontal(last_start(spec, pl.col("t")), pl.col("first_us") + reach)
    )
    each = spans.filter(pl.col("first_us") <= pl.col("last_us")).select(
        "k", "count", start=starts_between(spec, pl.col("first_us"), pl.col("last_us"))
    )
    windows = each.explode("start").group_by("k", "start").agg(pl.col("count").sum())
    return windows.with_columns(end=pl.col("start") + spec.duration)
