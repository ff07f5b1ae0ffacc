"""The source of the streams query: messages of all streams, packed by bucket, and ticks.

Every batch gives each bucket one row with the batch's end, and one row with records from each task that read
some for it. Without pushes there is no batch, until a window is due to be sealed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from ...store.encryption import Cipher
from ...store.pipeline import News, PipelineStore
from ...store.position import LARGEST, Position
from ...store.progress import ReadPoint, Stream, name_of
from ...store.steps import Steps
from ...windows.layout import NEVER
from ..kept import Kept
from ..spark.secrets import reveal
from ..spark.worker import prepare_worker
from .bucket_rows import BucketSource, announced, one_row
from .care import Care
from .definitions import Definitions
from .lost_state import begin_versions
from .offset import Batch, Offset
from .routing import Router
from .stream_plan import Range, Starts, cohorts, live_start, ranges, starts

NAME = "queenspark-streams"
SPLIT_ROWS = 100_000
# Spark polls the latest offset every 10 ms; each call waits up to this long for new messages.
WAIT_SECONDS = 1.0
_POLL_SECONDS = 0.02  # while safe time does not advance, poll with exponential backoff
_POLL_LONGEST = 0.5


class StreamsOptions(msgspec.Struct, frozen=True):
    """The options of the source."""

    #: A reference to the database and its keys (see spark/secrets.py), or the URL itself.
    url: str
    buckets: tuple[int, ...]
    max_rows: int
    care: Care = Care()


class StreamsDataSource(BucketSource):
    """The data source for Spark; its options are one JSON text."""

    format = NAME

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader."""
        return StreamsReader(msgspec.json.decode(self.options["options"], type=StreamsOptions))


@dataclass
class Split(InputPartition):
    """The input of one task."""

    read: Range | None
    seq: int
    end: str | None  # the batch, for the task that announces it to every bucket


# Keyed by URL: a restarted query has another reference to the same database.
_stores = Kept(PipelineStore)
_steps = Kept(Steps)


def store_of_this_process(url: str) -> PipelineStore:
    """Return the store of a database, by its URL or a reference to it."""
    return _stores.of(reveal(url).url)


def steps_of_this_process(url: str) -> Steps:
    """Return the notes of workers on the current job, by database URL or a reference to it."""
    return _steps.of(reveal(url).url)


@lru_cache(maxsize=16)
def definitions_of(url: str, seq: int, job: Stream | None = None) -> Definitions:
    """Return the immutable definitions as of a seq; of one job, if it has its own query."""
    store = store_of_this_process(url)
    return Definitions(seq, *(store.definitions(seq) if job is None else store.definition(job, seq)))


class _Reach(NamedTuple):
    """A readable range: end position, safe time there, approximate message count; early if cut short."""

    position: Position
    tick: int
    messages: int
    is_early: bool


class StreamsReader(DataSourceStreamReader):
    """Reads the log for all streams at once."""

    def __init__(self, options: StreamsOptions) -> None:
        self._options = options
        self._cuts: dict[tuple[Position, Position, tuple[int, ...]], list[Position]] = {}

    @property
    def _store(self) -> PipelineStore:
        return store_of_this_process(self._options.url)

    def _definitions(self, seq: int) -> Definitions:
        return definitions_of(self._options.url, seq)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The start of a new checkpoint."""
        return Offset.first().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The maximum batch size."""
        return ReadMaxRows(self._options.max_rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch; `start` again if there is nothing to do within a short wait."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_rows
        before = Offset.parse(start)
        deadline = time.monotonic() + WAIT_SECONDS
        pause = _POLL_SECONDS
        self._store.listen()
        if before.n == 0:
            begin_versions(self._store, before.run)
        while True:
            news = self._store.news(before.run)
            end = self._next(before, news, most)
            if end is not None:
                return end.to_json()
            left = deadline - time.monotonic()
            if left <= 0:
                return start
            until_close = (news.next_close - news.now) / 1e6 if news.next_close is not None else left
            if until_close <= 0:
                self._store.sample_clock()
                time.sleep(min(pause, left))
                pause = min(2 * pause, _POLL_LONGEST)
            else:
                self._store.wait(min(left, until_close), self._definitions(news.seq).queue_names)

    def _next(self, start: Offset, news: News, most: int) -> Offset | None:
        """Return the end of a batch with something to do, or None."""
        now = self._definitions(news.seq)
        at = starts(start, self._definitions(start.seq), now)
        held = self._held(start, at, now, news)
        floor = min((floor for floor in news.floors if floor > start.live), default=None)
        upto = Position(news.horizon - 1, LARGEST)
        if floor is not None:
            # A restarted run stops exactly where the previous one stopped, so that its output up to there is
            # the same, and known to be.
            upto = min(upto, Position(floor[0], floor[1]))
            news = news._replace(tick=floor[2] if news.tick is None else min(news.tick, floor[2]))
        whole = upto
        upto, news = self._cut(now, at.live, start.position, upto, news)
        is_cut = upto < whole
        live = self._reach(now.queues(at.live), live_start(now, at.live, start), upto, start.tick, news, most)
        # Streams that caught up have read as far as the others; the safe time applies to all of them.
        upto = live.position if live.is_early else upto
        position = max(start.position, live.position if live.messages else start.position)
        if (floor is not None or is_cut) and not live.is_early:
            position = max(position, upto)
        read = live.messages
        budget = max(most - read, min(SPLIT_ROWS, most))
        behind = {name_of(stream): point for stream, point in held.items()}
        waiting = list(cohorts(at.behind).items())
        turn = start.n % len(waiting) if waiting else 0
        for after, streams in waiting[turn:] + waiting[:turn]:
            _, _, tick = start.behind.get(name_of(min(streams)), (*after, NEVER))
            if budget <= 0:
                behind |= {name_of(stream): (*after, tick) for stream in streams}
                continue
            limit, then = self._cut(now, streams, after, upto, news)
            reach = self._reach(now.queues(streams), after, limit, tick, then, budget)
            read += reach.messages
            budget -= reach.messages
            if reach.is_early:
                behind |= {name_of(stream): (*reach.position, reach.tick) for stream in streams}
            elif limit < upto:
                behind |= {name_of(stream): (*limit, reach.tick) for stream in streams}
            elif reach.messages:
                position = max(position, reach.position)
        closes = news.next_close is not None and live.tick >= news.next_close
        changed = news.seq != start.seq or behind != start.behind or is_cut
        # A run reports its open windows only with its first batch beyond the previous run.
        takes_over = bool(news.floors) and live.tick > start.tick
        if not (read or at.added or closes or changed or takes_over or floor is not None):
            return None
        return Offset(
            run=start.run, n=start.n + 1, txid=position.txid, id=position.id, tick=live.tick, seq=news.seq,
            behind=behind, again=floor is not None,
        )  # fmt: skip

    def _held(self, start: Offset, at: Starts, now: Definitions, news: News) -> dict[Stream, ReadPoint]:
        """Return the jobs on hold: paused, failed, or with a full output queue. They keep their position.

        A failed one goes back to the position of its state.
        """
        failed = {(stream, version): (run, point) for stream, version, run, *point in news.failures}
        full = self._store.full_queues() if now.plans else set()
        held: dict[Stream, ReadPoint] = {}
        waiting = (
            {stream for stream in now.plans if now.window_queues.get(stream[0]) in full} if full else set()
        )
        stopped = (
            now.paused
            | (failed.keys() & (now.plans.keys() | now.broken.keys()))
            | waiting
            | now.broken.keys()
        )
        for stream in sorted(stopped):
            if stream not in at.live and stream not in at.behind:
                continue
            is_broken = stream in now.broken
            point = start.read_point(stream)
            if stream in at.behind:
                point = start.behind.get(name_of(stream), (*at.behind[stream], NEVER))
            if is_broken and stream not in failed:
                self._store.note_failure(stream, start, point, now.broken[stream])
            if stream in failed and failed[stream][0] == start.run:
                point = min(point, (failed[stream][1][0], failed[stream][1][1], failed[stream][1][2]))
            held[stream] = point
        for stream in held:
            at.live.discard(stream)
            at.behind.pop(stream, None)
        return held

    def _cut(
        self, now: Definitions, streams: set[Stream], after: Position, upto: Position, news: News
    ) -> tuple[Position, News]:
        """Return the end of a read before the next change of version, and the safe time there."""
        cuts = [
            cut
            for stream, positions in now.cuts.items()
            if stream in streams
            for cut in positions
            if after < cut < upto
        ]
        if not cuts:
            return upto, news
        stopped = self._store.safe_time(min(cuts).txid)
        tick = news.tick if stopped is None or news.tick is None else min(news.tick, stopped)
        return min(cuts), news._replace(tick=tick)

    def _reach(
        self, queues: list[int], after: Position, upto: Position, tick: int, news: News, most: int
    ) -> _Reach:
        """Return how far some queues can be read now."""
        safe = tick if news.tick is None else max(tick, news.tick)
        last = self._store.last(queues, after, upto) if queues else None
        if last is None:
            return _Reach(after, safe, 0, False)
        rows = min(SPLIT_ROWS, most)
        cuts = self._store.cuts(queues, after, last, rows, most=-(-most // rows))
        is_early = len(cuts) * rows >= most
        if is_early:
            last = cuts.pop()
            stopped = self._store.safe_time(last.txid)
            safe = tick if stopped is None else max(tick, min(safe, stopped))
        self._cuts[after, last, tuple(queues)] = cuts
        return _Reach(last, safe, (len(cuts) + 1) * rows, is_early)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Split a batch for parallel reads; the first task also announces the batch's end to every bucket."""
        before, after = Offset.parse(start), Offset.parse(end)
        now = self._definitions(after.seq)
        splits = []
        for each in ranges(before, after, self._definitions(before.seq), now):
            cuts = self._cuts.get((each.after, each.upto, each.queues))
            if cuts is None:
                cuts = self._store.cuts(each.queues, each.after, each.upto, SPLIT_ROWS)
            splits += [
                Split(each._replace(after=low, upto=high), after.seq, None)
                for low, high in pairwise([each.after, *cuts, each.upto])
            ]
        self._cuts.clear()
        splits = splits or [Split(None, after.seq, None)]
        splits[0].end = msgspec.json.encode(Batch(before, after)).decode()
        return splits

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part; runs in a task."""
        assert isinstance(partition, Split)
        prepare_worker()
        options = self._options
        yield from announced(options.buckets, partition.end)
        if partition.read is None:
            return
        definitions = definitions_of(options.url, partition.seq)
        care = options.care
        router = Router(
            definitions,
            partition.read,
            options.buckets,
            Cipher(reveal(options.url).encryption_key),
            care.failures(definitions),
            steps_of_this_process(options.url) if care.is_on else None,
        )
        store = store_of_this_process(options.url)
        read = partition.read
        for batch in store.read(
            read.queues, read.after, read.upto, payload=router.needs_payload, headers=router.needs_headers
        ):
            for bucket, packed in router.route(batch):
                yield one_row(bucket, None, packed)

    def stop(self) -> None:
        """Disconnect."""
        self._store.close()
