"""The next open window to be sealed, according to the records in the log."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import polars as pl

from ... import windows
from ...store.definitions import Body
from ...windows import WindowSpec


class NextWindow(NamedTuple):
    """The open window that ends first. Times are in microseconds."""

    key: str
    start_us: int
    #: None for a count window.
    end_us: int | None
    records: int
    #: The newest time of its key, which advances event time.
    newest_us: int
    #: Push time of the newest record of its key.
    pushed_us: int
    #: The safe time that seals it, if no more records arrive; None for a count window.
    due_us: int | None


def next_window(body: Body, spec: WindowSpec, records: pl.DataFrame, tick: int) -> NextWindow | None:
    """Return the next window; `tick` is the safe time known to the pipeline."""
    if records.is_empty():
        return None
    if spec.kind == "count":  # the first record starts the oldest open window
        key, start = records.row(0, named=True)["key"], records["time_us"][0]
        own = records.filter(pl.col("key") == key)
        newest, pushed = own.select(pl.col("time_us").max(), pl.col("created_us").max()).row(0)
        return NextWindow(key, start, None, min(own.height, spec.rows), newest, pushed, None)
    return min(open_windows(body, spec, records, tick, most=1), key=_end, default=None)


def open_windows(
    body: Body,
    spec: WindowSpec,
    records: pl.DataFrame,
    tick: int,
    *,
    most: int,
    keys: Collection[str] | None = None,
) -> list[NextWindow]:
    """Return open time windows with records, key by key; no count windows.

    Of each key (or of each of `keys`) those that end first, at most this many: records that slide by a second
    may be in thousands of windows.
    """
    if keys is not None:
        records = records.filter(pl.col("key").is_in(list(keys)))
    if records.is_empty() or spec.kind == "count":
        return []
    found = windows.open_windows(spec, records, tick, most=most, from_us=body.from_us, until_us=body.until_us)
    return [NextWindow(*row) for row in found.rows()]


def _end(window: NextWindow) -> int:
    assert window.end_us is not None
    return window.end_us
