"""What the pipeline asks the database and tells it, beside the log: synchronous, for Spark's processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from .definitions import Body, Definition, to_definitions
from .log import LogReader, between
from .position import LARGEST, Position
from .progress import End, Place, Progress, Stream, to_progress
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


class JobNews(NamedTuple):
    """What there is to know before a batch of a job that has a query of its own."""

    seq: int  # the last change of its version
    now: int  # the database's clock, in microseconds
    next_close: int | None  # when the next open window of this run wants to be sealed
    has_late: bool  # whether records of its version were late


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


class DefinitionChange:
    """Ends and begins versions, within a transaction."""

    def __init__(
        self, do: Callable[[str, dict[str, Any]], None], begun: Mapping[Stream, tuple[int, datetime]]
    ) -> None:
        self._do = do
        self._begun = begun

    def begun(self, stream: Stream) -> int:
        """The change of the definitions with which a version began."""
        return self._begun[stream][0]

    def begun_at(self, stream: Stream) -> datetime:
        """When a version began."""
        return self._begun[stream][1]

    def end(self, stream: Stream) -> None:
        """Let a version end: nothing more is read for it."""
        self._add(stream, None)
        self._do(query("forget_failures"), {"stream_id": stream[0], "version": stream[1]})

    def begin(self, stream: Stream, body: Body) -> None:
        """Begin the next version of a job."""
        self._add(stream, msgspec.json.encode(body).decode())
        self._do(query("change_job"), {"id": stream[0], "version": stream[1]})

    def _add(self, stream: Stream, computing: str | None) -> None:
        params = {"stream_id": stream[0], "version": stream[1], "body": None, "computing": computing}
        self._do(query("add_definition"), params)


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

    def job_news(self, job: Stream, run: str) -> JobNews:
        """What is new for the query of a job."""
        params = {"stream_id": job[0], "version": job[1], "run": run}
        (row,) = self._rows(query("job_news"), params)
        return JobNews(*row)

    def tell_of_job(self, job: Stream, report: str, *, finished: bool) -> None:
        """Tell the brokers what a job has read, as JSON, and whether it has read everything."""
        params = {"stream_id": job[0], "version": job[1], "report": report, "finished": finished}
        self._do(query("set_job_run"), params)

    def forget_failures(self, job: Stream) -> None:
        """A job goes on."""
        self._do(query("forget_failures"), {"stream_id": job[0], "version": job[1]})

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

    def earlier_progress(self, run: str) -> list[Progress]:
        """How far the buckets of earlier runs have come."""
        return [to_progress(state) for (state,) in self._rows(query("earlier_progress"), {"run": run})]

    def removals(self) -> list[tuple[int, int, int, datetime]]:
        """The last position that was removed from each queue, and when: queue, txid, id, time."""
        return [(queue, txid, id_, at) for queue, txid, id_, at in self._rows(query("removals"))]

    def failed_at(self, stream: Stream) -> Position | None:
        """The position from which on a failed version of a job has not given out everything."""
        params = {"stream_id": stream[0], "version": stream[1]}
        found = self._rows(query("failed_at"), params)
        return Position(*found[0]) if found else None

    @contextmanager
    def changing_definitions(self) -> Iterator[DefinitionChange]:
        """One transaction over definitions, in which nobody else changes them."""
        with self._transaction():
            self._do(query("lock_definitions"), {})
            yield DefinitionChange(self._do, dict(self._begun()))

    def _begun(self) -> Iterator[tuple[Stream, tuple[int, datetime]]]:
        for stream, version, seq, at in self._rows(query("versions_begun")):
            yield (stream, version), (seq, at)

    def take_steps(self) -> list[Stream]:
        """The jobs that workers computed when they died; they are forgotten."""
        return [(stream, version) for stream, version in self._rows(query("take_steps"))]

    def look(self) -> None:
        """Note the time, so that safe time can move."""
        self._do(query("look"), {"every": 0.0})

    def definitions(self, seq: int) -> tuple[list[Definition], dict[int, int]]:
        """What the streams query serves as of a change, and the window queues of the streams."""
        found = [row for row in self._definitions(seq) if not row.body.runs_alone]
        return found, dict(self._rows(query("window_queue_ids")))

    def definition(self, stream: Stream, seq: int) -> tuple[list[Definition], dict[int, int]]:
        """The same for one version of a job that has a query of its own; empty when it is gone."""
        found = [row for row in self._definitions(seq) if (row.stream_id, row.version) == stream]
        return found, dict(self._rows(query("window_queue_ids")))

    def wanted_jobs(self) -> list[Definition]:
        """The newest versions of jobs that need a query of their own now: neither paused nor finished."""
        newest: dict[int, Definition] = {}
        for row in self._definitions(self.latest_seq()):
            if row.body.runs_alone and row.version >= newest.get(row.stream_id, row).version:
                newest[row.stream_id] = row
        finished = set(self._rows(query("finished_jobs"))) if newest else set()
        return [
            row
            for row in newest.values()
            if not row.body.paused and (row.stream_id, row.version) not in finished
        ]

    def ended_jobs(self, jobs: Sequence[Stream]) -> list[Stream]:
        """Those of some versions of jobs that were dropped or replaced."""
        params = {"stream_ids": [job[0] for job in jobs], "versions": [job[1] for job in jobs]}
        return [(stream, version) for stream, version in self._rows(query("ended_jobs"), params)]

    def _definitions(self, seq: int) -> list[Definition]:
        return to_definitions(self._rows(query("definitions_as_of"), {"seq": seq}))

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
