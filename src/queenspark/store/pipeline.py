"""What the pipeline asks the database and tells it, beside the log: synchronous, for Spark's processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .definitions import Definition, to_definitions
from .log import LogReader, between
from .position import LARGEST, Position
from .progress import End, Place, Stream
from .queries import query

_NO_BUCKET = -1  # for all of them


class News(NamedTuple):
    """What there is to know before a batch."""

    seq: int  # the last change of the definitions
    horizon: int  # everything below it is final
    tick: int | None  # the safe time that goes with the horizon, in microseconds
    now: int  # the database's clock, in microseconds
    next_close: int | None  # when the next open window of this run wants to be sealed
    floors: list[Place]  # how far earlier runs have pushed
    #: Versions of jobs that have failed: stream, version, run, and the place that their state is as of.
    failures: list[tuple[int, int, str, int, int, int]]


class Totals(NamedTuple):
    """What a stream's newest version, or a bucket, has counted so far."""

    records: int
    windows: int
    late: int


class StreamTotals(NamedTuple):
    """The totals of a stream, with its names for people."""

    namespace: str
    name: str
    version: int
    totals: Totals


class Leader(NamedTuple):
    """Who leads."""

    epoch: int
    is_mine: bool


class PipelineStore(LogReader):
    """The log, the definitions of streams and the pipeline's own rows."""

    def news(self, run: str) -> News:
        """What is new for the query of that run."""
        (row,) = self._rows(query("pipeline_news"), {"run": run})
        seq, horizon, tick, now, next_close, floors, failures = row
        return News(
            seq, horizon, tick, now, next_close, [tuple(floor) for floor in floors or []],
            [tuple(failure) for failure in failures or []],
        )  # fmt: skip

    def note_failure(self, stream: Stream, end: End, place: Place, error: str) -> None:
        """Note that nothing can be read for a version of a job."""
        names = ("txid", "id", "tick")
        columns = {"stream": [stream[0]], "version": [stream[1]], "error": [error]}
        columns |= {name: [value] for name, value in zip(names, place, strict=True)}
        params = {"bucket": _NO_BUCKET, "run": end.run, "batch": end.n}
        self._do(query("add_failures"), {**params, **columns})

    def full_queues(self) -> set[int]:
        """The output queues of jobs that are full."""
        full = set()
        for queue_id, most in self._rows(query("limited_output_queues")):
            ((backlog,),) = self._rows(query("backlog"), {"queue_id": queue_id, "limit": most})
            if backlog >= most:
                full.add(int(queue_id))
        return full

    def look(self) -> None:
        """Note the time, so that safe time can move."""
        self._do(query("look"), {"every": 0.0})

    def definitions(self, seq: int) -> tuple[list[Definition], dict[int, int]]:
        """The definitions as of a change, and the window queues of the streams."""
        rows = self._rows(query("definitions_as_of"), {"seq": seq})
        return to_definitions(rows), dict(self._rows(query("window_queue_ids")))

    def lead(self, holder: str, seconds: float) -> Leader:
        """Become or stay the leader for some seconds, unless somebody else leads."""
        ((epoch, is_mine),) = self._rows(query("lead_pipeline"), {"holder": holder, "seconds": seconds})
        return Leader(epoch, is_mine)

    def note_process(self, name: str, version: str) -> None:
        """Say that a pipeline runs, leading or standing by."""
        params = {"name": name, "kind": "pipeline", "version": version, "address": None}
        self._do(query("note_process"), params)

    def end_stuck_pushes(self, holder: str) -> None:
        """End what a leader whose lease is over has begun to push, unless the holder is that leader."""
        self._do(query("end_stuck_pushes"), {"holder": holder})

    def resign(self, holder: str) -> None:
        """Let somebody else lead at once."""
        self._do(query("resign_pipeline"), {"holder": holder})

    def say(self, key: str, value: str) -> None:
        """Tell the brokers something about the pipeline, as JSON."""
        self._do(query("set_pipeline_stats"), {"key": key, "value": value})

    def totals(self) -> tuple[dict[int, StreamTotals], dict[int, Totals]]:
        """What the streams have counted, by id, and what the buckets have, by number."""
        streams: dict[int, StreamTotals] = {}
        buckets: dict[int, Totals] = {}
        for stream, namespace, name, version, bucket, *counts in self._rows(query("stream_totals")):
            if bucket is None:
                streams[stream] = StreamTotals(namespace, name, version, Totals(*counts))
            else:
                buckets[bucket] = Totals(*counts)
        return streams, buckets

    def readable(self) -> Position:
        """The last position that may have a message below the horizon."""
        ((horizon,),) = self._rows(query("log_horizon"))
        return Position(horizon - 1, LARGEST)

    def arrived(self, queue_ids: Sequence[int], after: Position, upto: Position, most: int) -> dict[int, int]:
        """How many messages each queue got between two positions; no more than `most` are counted of each."""
        params = {"queue_ids": list(queue_ids), "most": most, **between(after, upto)}
        return dict(self._rows(query("count_arrived"), params))

    def latest_seq(self) -> int:
        """The last change of the definitions."""
        ((seq,),) = self._rows(query("latest_seq"))
        return int(seq)

    def set_rates(self, rates: Mapping[str, Sequence[float]]) -> None:
        """Tell the brokers the rates of streams: columns `stream`, `arriving` and so on."""
        self._do(query("set_stream_rates"), dict(rates))

    def _do(self, statement: str, params: dict[str, Any]) -> None:
        self._rows(statement, params)
