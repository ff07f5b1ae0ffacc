"""The first stage of a job, in the task that reads its records: its output goes to the buckets."""

from __future__ import annotations

import polars as pl

from ...store.progress import Stream
from ...windows.membership import is_in_version
from ...windows.merging import Merging
from .definitions import Definitions
from .parcels import Parcels

RECORD = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "source": pl.Int32, "txid": pl.Int64,
    "id": pl.Int64, "created_us": pl.Int64, "event_us": pl.Int64,
}  # fmt: skip
_BOUNDS = ("after_txid", "after_id", "until_txid", "until_id", "before_us")
Bounds = tuple[int | None, ...]
_MOST_DEAD = 100  # per job and read
MOST_REASON = 1000  # characters


class JobStage:
    """A version that computes, and the filter on its records: with `bounds`, only those within them."""

    def __init__(self, stream: Stream, definitions: Definitions, bounds: Bounds | None = None) -> None:
        self.stream = stream
        self._bounds = bounds
        self._plan = definitions.plans[stream]
        query = definitions.by_stream[stream].body.query or {}
        self._has_rows = query.get("output", "rows") == "rows"
        self._stage = definitions.record_stage(stream)

    def run(self, messages: pl.DataFrame, parcels: Parcels, merging: Merging | None = None) -> None:
        """Process messages, and add the output to the parcels, merged where possible."""
        if self._bounds is not None:
            bounds = {
                name: pl.lit(value, dtype=pl.Int64) for name, value in zip(_BOUNDS, self._bounds, strict=True)
            }
            messages = messages.with_columns(**bounds).filter(is_in_version()).drop(_BOUNDS)
        taken = self._stage.run(messages)
        if not taken.records.is_empty():
            records = self._named(taken.records).rename({"queue_id": "source"})
            if self._has_rows:
                # Rows do not refer to their records: the engine need not distinguish queues.
                records = records.with_columns(source=pl.lit(0, dtype=pl.Int32))
            others = [name for name in records.columns if name not in RECORD]
            records = records.select(*RECORD, *others)
            for frame in [records] if merging is None else merging.merged(records):
                parcels.add_records(frame)
        if not taken.rows.is_empty():
            parcels.add_rows(self._named(taken.rows))
        self.bury(taken.dead, parcels)

    def bury(self, dead: pl.DataFrame, parcels: Parcels) -> None:
        """Add dead records: all are counted, and some are kept."""
        if not dead.is_empty():
            dead = self._named(dead).with_columns(pl.col("reason").str.head(MOST_REASON))
            kept = 0 if self._plan.options.get("on_error") == "skip" else _MOST_DEAD
            parcels.add_dead(dead.head(kept), self.stream, dead.height)

    def _named(self, frame: pl.DataFrame) -> pl.DataFrame:
        stream, version = self.stream
        return frame.with_columns(
            stream=pl.lit(stream, dtype=pl.Int64), version=pl.lit(version, dtype=pl.Int32)
        )
