"""Reads a Kafka topic as one log, merged by time (see kafka_position.py)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from ...sql.payload import Field
from ..reader import DEAD, Limits, Next, Position, Read, ReadFailed, Split
from ..readers import Source
from .cut import cut
from .kafka_options import KafkaOptions
from .kafka_position import OFFSET_BITS, KafkaPosition, KafkaSplit, Range
from .partition_reader import Gap, read_ranges
from .records import RecordDecoder, effective
from .sample import mean_bytes
from .topic import Topic, Unavailable

log = logging.getLogger("queenspark.kafka")

OUTAGE_SECONDS = 60.0
"""Time that brokers may be unavailable before the job fails; it is retried later."""
SPLIT_ROWS = 20_000
MOST_SPLITS = 16
_LARGE = 1_000_000.0  # assumed message size in bytes until messages have been sampled


class KafkaReader:
    """Reads one topic for one version of a job."""

    is_bounded = False
    has_clock = True

    def __init__(self, source: Source, fields: Sequence[Field], pseudo: Sequence[str]) -> None:
        self._source = source
        self._fields = list(fields)
        self._pseudo = list(pseudo)
        self._options = KafkaOptions.of(source.options)
        self._topic_: Topic | None = None
        self._step = 0
        self._mean = _LARGE
        self._away_since: float | None = None

    def __reduce__(self) -> Any:
        return KafkaReader, (self._source, self._fields, self._pseudo)

    # In the driver

    @property
    def _topic(self) -> Topic:
        if self._topic_ is None:
            self._topic_ = Topic(self._options)
        return self._topic_

    def start(self) -> Position:
        """Return the start of the topic, its end, or the first offsets at a time."""
        try:
            topic, start = self._topic, self._source.start
            if start == "earliest":
                return KafkaPosition(topic.id(), 0, tuple(topic.starts())).to_json()
            if start == "latest":
                return KafkaPosition(topic.id(), _now(), tuple(topic.ends())).to_json()
            millis = int(datetime.fromisoformat(start).astimezone(UTC).timestamp() * 1000)
            return KafkaPosition(topic.id(), millis, tuple(topic.at(millis))).to_json()
        except Unavailable as error:
            raise ReadFailed(str(error)) from None

    def next(self, position: Position, limits: Limits) -> Next | None:
        """Return the end of the next batch; None without new data, or during a short broker outage."""
        before = KafkaPosition.parse(position)
        try:
            found = self._next(before, limits)
        except Unavailable as error:
            now = time.monotonic()
            if self._away_since is None:
                self._away_since = now
                log.warning("%s; the job %s is waiting", error, self._source.name)
            if now - self._away_since > OUTAGE_SECONDS:
                raise ReadFailed(str(error)) from None
            return None
        self._away_since = None
        return found

    def _next(self, before: KafkaPosition, limits: Limits) -> Next | None:
        topic = self._topic
        ends, firsts = topic.ends(), topic.starts()
        if len(ends) < len(before.offsets):
            raise ReadFailed(_recreated(self._options.topic))
        known = [*before.offsets, *firsts[len(before.offsets) :]]  # new partitions are read from their start
        self._check(known, ends)
        if ends == list(before.offsets):
            return None
        if before.topic and topic.id() not in ("", before.topic):
            raise ReadFailed(_recreated(self._options.topic))
        starts = [min(max(pair), end) for *pair, end in zip(known, firsts, ends, strict=True)]
        found = cut(topic, starts, ends, before.time, _now(), self._rows(starts, ends, limits), self._step)
        self._step = found.time - before.time if before.time else 0
        after = KafkaPosition(before.topic, found.time, found.offsets)
        return Next(after.to_json(), found.has_more, tick=found.time * 1000)

    def _check(self, known: Sequence[int], ends: Sequence[int]) -> None:
        for partition, (offset, end) in enumerate(zip(known, ends, strict=True)):
            if end < offset:
                raise ReadFailed(
                    f"partition {partition} of the topic {self._options.topic} ends at offset {end}, but was"
                    f" read up to {offset}: it lost records, or the topic was recreated; DROP the job and"
                    " create it again"
                )

    def _rows(self, starts: Sequence[int], ends: Sequence[int], limits: Limits) -> int:
        """Return the row limit of a batch. Kafka does not report record sizes, so records are sampled."""
        sizes = [end - start for start, end in zip(starts, ends, strict=True)]
        if sum(sizes) * self._mean < limits.bytes / 4:
            return limits.rows
        largest = sizes.index(max(sizes))
        last = starts[largest] + min(sizes[largest], limits.rows)
        self._mean = mean_bytes(self._options, largest, starts[largest], last)
        return max(1, min(limits.rows, int(limits.bytes / self._mean)))

    def splits(self, start: Position, end: Position) -> list[Split]:
        """Return ranges of partitions; small ones share a split."""
        before, after = KafkaPosition.parse(start), KafkaPosition.parse(end)
        known = [*before.offsets, *[0] * (len(after.offsets) - len(before.offsets))]
        ranges = [
            Range(partition, low, high)
            for partition, (low, high) in enumerate(zip(known, after.offsets, strict=True))
            if low < high
        ]
        rows = sum(each.end - each.start for each in ranges)
        number = min(len(ranges), MOST_SPLITS, -(-rows // SPLIT_ROWS))
        shares: list[list[Range]] = [[] for _ in range(number)]
        sizes = [0] * number
        for each in sorted(ranges, key=lambda each: each.start - each.end):
            smallest = sizes.index(min(sizes))
            shares[smallest].append(each)
            sizes[smallest] += each.end - each.start
        return [KafkaSplit(tuple(share), before.time, after.time) for share in shares]

    def report(self, position: Position) -> dict[str, Any]:
        """Return the number of partitions and the lag in records, estimated from offsets."""
        read = KafkaPosition.parse(position).offsets
        found: dict[str, Any] = {"partitions": len(read)}
        if self._topic_ is not None and self._away_since is None:
            try:
                ends = self._topic_.ends()
            except Unavailable:
                return found
            found["lagRecords"] = sum(max(0, end - offset) for end, offset in zip(ends, read, strict=False))
        return found

    def close(self) -> None:
        """Disconnect."""
        if self._topic_ is not None:
            self._topic_.close()
            self._topic_ = None

    # In a task

    def read(self, split: Split) -> Iterator[Read]:
        """Yield the records of a split. Offsets that retention has removed become one dead record."""
        assert isinstance(split, KafkaSplit)
        decoder = RecordDecoder(self._options.format, self._fields, self._pseudo)
        newest = {each.partition: split.floor for each in split.ranges}
        for found in read_ranges(self._options, split.ranges):
            if isinstance(found, Gap):
                yield _removed(found, split.floor)
                continue
            times, newest[found.partition] = effective(
                found.messages, newest[found.partition], split.floor, split.cap
            )
            yield decoder.read(found.partition, found.messages, times)


def open_reader(source: Source, fields: Sequence[Field], pseudo: Sequence[str] = ()) -> KafkaReader:
    """Return the reader of a topic."""
    return KafkaReader(source, fields, pseudo)


def _removed(gap: Gap, floor: int) -> Read:
    reason = (
        f"partition {gap.partition}, offsets {gap.start} to {gap.end - 1}: removed by the topic's retention "
        "before the job read them"
    )
    record = (floor * 1000, (gap.partition << OFFSET_BITS) + gap.start, str(gap.partition), reason)
    log.warning("%s", reason)
    return Read(pl.DataFrame(), pl.DataFrame([record], schema=DEAD, orient="row"), 0)


def _recreated(topic: str) -> str:
    return (
        f"the topic {topic} was deleted and recreated since the job last read it, so the job's offsets are "
        "invalid; DROP the job and create it again"
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
