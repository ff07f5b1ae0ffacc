"""The stateful step of a job's query: as in the streams query, for one job and a source that may end."""

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
from .packed_rows import packed_rows

_PACKED_ROWS = 50_000
_END = 2**61
"""A safe time after all others: when the source has ended, every window is over."""


class JobProcessor(WindowProcessor):
    """One call for each bucket and batch of a job."""

    def __init__(
        self, url: str, epoch: int, buckets: tuple[int, ...], job: Stream, *, writes: bool = False
    ) -> None:
        """With `writes`, rows are not pushed but come out, packed, for a sink outside."""
        super().__init__(url, epoch, buckets)
        self.job: Stream = job
        self._writes = writes
        self.extra = {"rows": None} if writes else {}
        self._rows = pl.DataFrame()

    def batch(self, text: str) -> JobBatch:
        """The batch that a bucket is told of."""
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
        """What the engine makes of a batch; at the end of the source it gives out all that is open."""
        assert isinstance(batch, JobBatch)
        try:
            return self._advance(engine, state, records, safe, was, batch)
        except RecordsNeeded:
            single = single_records(self._options(batch.end.seq), batch, bucket)
            return self._advance(engine, state, single, safe, was, batch)

    def _options(self, seq: int) -> JobOptions:
        """What its source knows, as far as tasks need it."""
        definitions = self.definitions(seq)
        definition, plan = definitions.by_stream[self.job], definitions.plans[self.job]
        return JobOptions(
            source_of(reveal(self._url).url, definition, plan, self._epoch), self._buckets, 0, 0
        )

    def _advance(
        self,
        engine: Engine,
        state: State | None,
        records: list[pl.DataFrame],
        safe: Mapping[Stream, int],
        was: Mapping[Stream, int],
        batch: JobBatch,
    ) -> Result:
        if not batch.end.ended:
            return engine.advance(state, records, safe, was)
        specs = self.definitions(batch.end.seq).specs
        over = {
            stream: tick if stream not in specs or specs[stream].kind in COUNTED else _END
            for stream, tick in safe.items()
        }
        result = engine.advance(state, records, over, was)
        return result._replace(rows=[*result.rows, *engine.finish(result.state)])

    def parts(self, outcome: Outcome) -> Parts:
        """What is pushed. A job that cannot compute its rows fails: nobody else has this query."""
        for reason in outcome.failed.values():
            raise JobFailed(reason)
        parts = super().parts(outcome)
        if not self._writes:
            return parts
        self._rows = parts.rows
        return parts._replace(rows=parts.rows.clear())

    def more(self, bucket: int) -> Iterator[pd.DataFrame]:
        """The rows of a sink, packed; Spark's sink takes care that they are there once."""
        rows, self._rows = self._rows, pl.DataFrame()
        for part in rows.iter_slices(_PACKED_ROWS):
            yield pd.DataFrame(
                {"bucket": [bucket], **{name: [0] for name in FIGURES}, "rows": [packed_rows(part)]}
            )
