"""The rates of streams: arrivals in their source queues versus processed records.

The leading pipeline measures them once a second while it works, and brokers show them. A measurement counts
only messages that arrived since the previous one, up to a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from ...store.pipeline import PipelineStore, Totals
from ...store.position import Position
from ...store.progress import Stream
from .definitions import Definitions
from .sliding import Counts, Rates, Sliding, rates_of

_MOST_COUNTED = 200_000  # messages per measurement, over all queues
_LEAST_COUNTED = 1000  # per queue, however many there are
_MANY_STREAMS = 100
_MANY_SECONDS = 5.0


class Late(NamedTuple):
    """Late records of a stream with the policy `warn`."""

    namespace: str
    name: str
    records: int


class Measured(NamedTuple):
    """The rates of the pipeline and of its buckets, and late records since the previous measurement."""

    pipeline: Rates
    buckets: dict[int, Rates]
    late: list[Late]


class StreamRates:
    """Measures, and reports the rates of each stream to the brokers."""

    def __init__(self, store: PipelineStore, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._definitions = Definitions(-1, [], {})
        self._counted_to: Position | None = None
        self._measured_at = 0.0
        self._arrived: Counter[int] = Counter()
        self._streams: dict[Stream, Sliding] = {}
        self._buckets: dict[int, Sliding] = {}
        self._told: dict[int, Rates] = {}
        self._told_at = -_MANY_SECONDS

    def measure(self) -> Measured:
        """Return rates over the last minute, or since the first measurement."""
        newest = self._newest_versions()
        at = self._clock()
        is_first = self._counted_to is None
        before = self._arrived.copy()
        self._count_arrived({queue_id for sources in newest.values() for queue_id in sources})
        totals, buckets = self._store.totals()
        late = []
        streams: dict[Stream, Sliding] = {}
        for stream, sources in newest.items():
            found = totals.get(stream[0])
            mine = found.totals if found is not None and found.version == stream[1] else Totals(0, 0, 0)
            now = _counts(self._arrived, sources, mine)
            known = self._streams.get(stream)
            if known is None:
                begin = now if is_first else _counts(before, sources, Totals(0, 0, 0))
                known = Sliding(at if is_first else self._measured_at, begin)
            new_late = now.late - known.latest.late
            known.add(at, now)
            streams[stream] = known
            body = self._definitions.by_stream[stream].body
            if new_late > 0 and body.spec.get("late") == "warn":
                late.append(Late(body.namespace, body.name, new_late))
        self._streams = streams
        self._measured_at = at
        self._tell(at)
        return Measured(self._of_pipeline(), self._of_buckets(at, buckets), late)

    def _newest_versions(self) -> dict[Stream, list[int]]:
        seq = self._store.latest_seq()
        if seq != self._definitions.seq:
            self._definitions = Definitions(seq, *self._store.definitions(seq))
        newest = dict(sorted(self._definitions.by_stream))  # the last version of each stream wins
        return {
            stream: [source.queue_id for source in self._definitions.by_stream[stream].body.sources]
            for stream in newest.items()
        }

    def _count_arrived(self, queue_ids: set[int]) -> None:
        upto = self._store.readable()
        if self._counted_to is not None and queue_ids and upto > self._counted_to:
            most = max(_LEAST_COUNTED, _MOST_COUNTED // len(queue_ids))
            self._arrived.update(self._store.arrived(sorted(queue_ids), self._counted_to, upto, most))
        self._counted_to = upto

    def _tell(self, at: float) -> None:
        """Write changed rates; those of many streams less often than every second."""
        rates = {stream: rates_of(each.counts, each.seconds) for (stream, _), each in self._streams.items()}
        changed = {stream: each for stream, each in rates.items() if self._told.get(stream) != each}
        if not changed or (len(changed) > _MANY_STREAMS and at < self._told_at + _MANY_SECONDS):
            return
        columns = zip(Rates._fields, map(list, zip(*changed.values(), strict=True)), strict=True)
        self._store.set_rates({"stream": list(changed), **dict(columns)})
        self._told, self._told_at = rates, at

    def _of_pipeline(self) -> Rates:
        slidings = self._streams.values()
        summed = [sum(column) for column in zip(*(each.counts for each in slidings), strict=True)]
        return rates_of(Counts(*summed), max((each.seconds for each in slidings), default=0.0))

    def _of_buckets(self, at: float, totals: dict[int, Totals]) -> dict[int, Rates]:
        for bucket, each in totals.items():
            counts = Counts(0, each.records, each.windows, each.late)
            known = self._buckets.get(bucket)
            # Deleting or redefining a stream decreases the totals.
            if known is None or any(now < then for now, then in zip(counts, known.latest, strict=True)):
                self._buckets[bucket] = Sliding(at, counts)
            else:
                known.add(at, counts)
        return {bucket: rates_of(each.counts, each.seconds) for bucket, each in self._buckets.items()}


def _counts(arrived: Counter[int], queue_ids: list[int], totals: Totals) -> Counts:
    return Counts(sum(arrived[each] for each in queue_ids), totals.records, totals.windows, totals.late)
