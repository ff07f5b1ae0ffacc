"""The stateful operator of a job's query: that of the streams query, for one job whose source may end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd
import polars as pl

from ...store.progress import Stream
from ...store.window_sink import Parts
from ...windows import Engine, RecordsNeeded, Result, State
from ...windows.spec import COUNTED
from ..errors import JobFailed
from ..spark.secrets import reveal
from ..streams.offset import Batch
from ..streams.outcome import Outcome
from ..streams.window_processor import FIGURES, WindowProcessor
from .job_offset import JobBatch, parse_batch
from .job_source import JobOptions, single_records, source_of
from .packed_rows import Emit

_END = 2**61
"""A safe time later than any other: at the end of the source, every window closes."""


class JobProcessor(WindowProcessor):
    """Processes a job's batches, one call per bucket and batch."""

    def __init__(
        self, url: str, epoch: int, buckets: tuple[int, ...], job: Stream, emit: Emit | None = None
    ) -> None:
        """With `emit`, rows are not pushed but emitted for an external sink."""
        super().__init__(url, epoch, buckets)
        self.job: Stream = job
        self._emit = emit
        self.extra = {"rows": None} if emit is not None else {}
        self._rows = pl.DataFrame()

    def batch(self, text: str) -> JobBatch:
        """Parse the batch that was sent to a bucket."""
        return parse_batch(text)

    def advance(
        self,
        engine: Engine,
        state: State | None,
        records: list[pl.DataFrame],
        safe: Mapping[Stream, int],
        was: Mapping[Stream, int],
        batch: Batch,
        bucket: int,
    ) -> Result:
        """Advance the engine by a batch; at the end of the source, emit all open windows."""
        assert isinstance(batch, JobBatch)
        is_over = batch.end.ended
        lag, moved = batch.end.lag, batch.end.lag - batch.start.lag
        if lag:
            safe, was = ({stream: tick + lag for stream, tick in ticks.items()} for ticks in (safe, was))
        if moved and state is not None:
            state = state.later(moved)
        if is_over:
            safe = self._closing(batch.end.seq, safe)
        try:
            result = engine.advance(state, _later(records, lag), safe, was)
        except RecordsNeeded:
            single = single_records(self._options(batch.end.seq), batch, bucket)
            result = engine.advance(state, _later(single, lag), safe, was)
        return result._replace(rows=[*result.rows, *engine.finish(result.state)]) if is_over else result

    def _options(self, seq: int) -> JobOptions:
        """Return the source's options that tasks need."""
        definitions = self.definitions(seq)
        definition, plan = definitions.by_stream[self.job], definitions.plans[self.job]
        return JobOptions(
            source_of(reveal(self._url).url, definition, plan, self._epoch), self._buckets, 0, 0
        )

    def _closing(self, seq: int, safe: Mapping[Stream, int]) -> dict[Stream, int]:
        """Return the safe times at the end of the source, which close every window by time."""
        specs = self.definitions(seq).specs
        return {
            stream: tick if stream not in specs or specs[stream].kind in COUNTED else _END
            for stream, tick in safe.items()
        }

    def parts(self, outcome: Outcome) -> Parts:
        """Return the rows to push. An error fails the whole query, which no other job shares."""
        for reason in outcome.failed.values():
            raise JobFailed(reason)
        parts = super().parts(outcome)
        if self._emit is None:
            return parts
        self._rows = parts.rows
        return parts._replace(rows=parts.rows.clear())

    def more(self, bucket: int) -> Iterator[pd.DataFrame]:
        """Yield the rows of a sink; exactly-once delivery is up to the sink."""
        rows, self._rows = self._rows, pl.DataFrame()
        if self._emit is None or rows.is_empty():
            return
        for value in self._emit(rows):
            yield pd.DataFrame({"bucket": [bucket], **{name: [0] for name in FIGURES}, "rows": [value]})


def _later(records: list[pl.DataFrame], microseconds: int) -> list[pl.DataFrame]:
    """Return records as if they had been created later."""
    if not microseconds:
        return records
    return [frame.with_columns(pl.col("created_us") + microseconds) for frame in records]
