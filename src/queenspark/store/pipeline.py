"""The pipeline's tables, apart from the log: synchronous, for Spark's processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from .definitions import Body, Definition, to_definitions
from .log import LogReader, between
from .position import LARGEST, Position
from .progress import End, Progress, ReadPoint, Stream, to_progress
from .queries import query

_NO_BUCKET = -1  # for all buckets


class News(NamedTuple):
    """The state of the database before a batch."""

    seq: int  # the last change of the definitions
    horizon: int  # everything below it is final
    tick: int | None  # the safe time at the horizon, in microseconds
    now: int  # the database's clock, in microseconds
    next_close: int | None  # when the next open window of this run is to be sealed
    floors: list[ReadPoint]  # how far earlier runs have pushed
    #: Failed versions of jobs: stream, version, run, and the position of their state.
    failures: list[tuple[int, int, str, int, int, int]]


class JobNews(NamedTuple):
    """The state of the database before a batch of a job with its own query."""

    seq: int  # the last change of its version
    now: int  # the database's clock, in microseconds
    next_close: int | None  # when the next open window of this run is to be sealed
    has_late: bool  # whether records of its version were late


class Totals(NamedTuple):
    """The counts of a stream's newest version, or of a bucket."""

    records: int
    windows: int
    late: int


class StreamTotals(NamedTuple):
    """The totals of a stream, with its names."""

    namespace: str
    name: str
    version: int
    totals: Totals


class Leader(NamedTuple):
    """The current leader."""

    epoch: int
    is_mine: bool


class DefinitionChange:
    """Ends and starts versions, within a transaction."""

    def __init__(
        self, do: Callable[[str, dict[str, Any]], None], begun: Mapping[Stream, tuple[int, datetime]]
    ) -> None:
        self._do = do
        self._begun = begun

    def begun(self, stream: Stream) -> int:
        """The seq with which a version began."""
        return self._begun[stream][0]

    def begun_at(self, stream: Stream) -> datetime:
        """When a version began."""
        return self._begun[stream][1]

    def end(self, stream: Stream) -> None:
        """End a version: it reads nothing more."""
        self._add(stream, None)
        self._do(query("forget_failures"), {"stream_id": stream[0], "version": stream[1]})

    def begin(self, stream: Stream, body: Body) -> None:
        """Start the next version of a job."""
        self._add(stream, msgspec.json.encode(body).decode())
        self._do(query("change_job"), {"id": stream[0], "version": stream[1]})

    def _add(self, stream: Stream, computing: str | None) -> None:
        params = {"stream_id": stream[0], "version": stream[1], "body": None, "computing": computing}
        self._do(query("add_definition"), params)


class PipelineStore(LogReader):
    """The log, the definitions of streams, and the pipeline's own tables."""

    def news(self, run: str) -> News:
        """Return the state before a batch of the streams query of this run."""
        (row,) = self._rows(query("pipeline_news"), {"run": run})
        seq, horizon, tick, now, next_close, floors, failures = row
        return News(
            seq, horizon, tick, now, next_close, [tuple(floor) for floor in floors or []],
            [tuple(failure) for failure in failures or []],
        )  # fmt: skip

    def job_news(self, job: Stream, run: str) -> JobNews:
        """Return the state before a batch of a job's query."""
        params = {"stream_id": job[0], "version": job[1], "run": run}
        (row,) = self._rows(query("job_news"), params)
        return JobNews(*row)

    def tell_of_job(self, job: Stream, report: str, *, finished: bool) -> None:
        """Report a job's read progress as JSON, and whether it has read everything."""
        params = {"stream_id": job[0], "version": job[1], "report": report, "finished": finished}
        self._do(query("set_job_run"), params)

    def job_start(self, job: Stream, found: Callable[[], Any]) -> Any:
        """Return where a job first started; if it has not, record the position that `found` returns."""
        params: dict[str, Any] = {"stream_id": job[0], "version": job[1]}
        known = self._rows(query("job_start"), params)
        if known:
            return known[0][0]
        start = found()
        params["start"] = msgspec.json.encode(start).decode()
        kept = self._rows(query("keep_job_start"), params)
        return kept[0][0] if kept else start  # the job was dropped

    def forget_failures(self, job: Stream) -> None:
        """Clear the failures of a job, so that it continues."""
        self._do(query("forget_failures"), {"stream_id": job[0], "version": job[1]})

    def note_failure(self, stream: Stream, end: End, point: ReadPoint, error: str) -> None:
        """Record that a version of a job cannot read."""
        names = ("txid", "id", "tick")
        columns = {"stream": [stream[0]], "version": [stream[1]], "error": [error]}
        columns |= {name: [value] for name, value in zip(names, point, strict=True)}
        params = {"bucket": _NO_BUCKET, "run": end.run, "batch": end.n}
        self._do(query("add_failures"), {**params, **columns})

    def full_queues(self) -> set[int]:
        """Return the full output queues of jobs."""
        full = set()
        for queue_id, most in self._rows(query("limited_output_queues")):
            ((backlog,),) = self._rows(query("backlog"), {"queue_id": queue_id, "limit": most})
            if backlog >= most:
                full.add(int(queue_id))
        return full

    def earlier_progress(self, run: str) -> list[Progress]:
        """Return the progress of the buckets of earlier runs."""
        return [to_progress(state) for (state,) in self._rows(query("earlier_progress"), {"run": run})]

    def removals(self) -> list[tuple[int, int, int, datetime]]:
        """Return the last position removed from each queue, and when: queue, txid, id, time."""
        return [(queue, txid, id_, at) for queue, txid, id_, at in self._rows(query("removals"))]

    def failed_at(self, stream: Stream) -> Position | None:
        """Return the position from which on the output of a failed job version is incomplete."""
        params = {"stream_id": stream[0], "version": stream[1]}
        found = self._rows(query("failed_at"), params)
        return Position(*found[0]) if found else None

    @contextmanager
    def changing_definitions(self) -> Iterator[DefinitionChange]:
        """Open a transaction over definitions, under their lock."""
        with self._transaction():
            self._do(query("lock_definitions"), {})
            yield DefinitionChange(self._do, dict(self._begun()))

    def _begun(self) -> Iterator[tuple[Stream, tuple[int, datetime]]]:
        for stream, version, seq, at in self._rows(query("versions_begun")):
            yield (stream, version), (seq, at)

    def take_steps(self) -> list[Stream]:
        """Return and clear the jobs that were being computed by workers that died."""
        return [(stream, version) for stream, version in self._rows(query("take_steps"))]

    def sample_clock(self) -> None:
        """Take a clock sample, so that safe time can advance."""
        self._do(query("look"), {"every": 0.0})

    def definitions(self, seq: int) -> tuple[list[Definition], dict[int, int]]:
        """Return the definitions of the streams query as of a seq, and the window queues of the streams."""
        found = [row for row in self._definitions(seq) if not row.body.runs_alone]
        return found, dict(self._rows(query("window_queue_ids")))

    def definition(self, stream: Stream, seq: int) -> tuple[list[Definition], dict[int, int]]:
        """Return the same for one version of a job with its own query; empty if it is gone."""
        found = [row for row in self._definitions(seq) if (row.stream_id, row.version) == stream]
        return found, dict(self._rows(query("window_queue_ids")))

    def wanted_jobs(self) -> list[Definition]:
        """Return the newest versions of jobs that need their own query now: neither paused nor finished."""
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
        """Acquire or renew leadership for some seconds, unless another process leads."""
        params = {"holder": holder, "seconds": seconds}
        if renewed := self._rows(query("renew_pipeline"), params):
            return Leader(renewed[0][0], is_mine=True)
        ((epoch, is_mine),) = self._rows(query("lead_pipeline"), params)
        return Leader(epoch, is_mine)

    def note_process(self, name: str, version: str) -> None:
        """Report a running pipeline, leading or standby."""
        params = {"name": name, "kind": "pipeline", "version": version, "address": None}
        self._do(query("note_process"), params)

    def end_stuck_pushes(self, holder: str) -> None:
        """End unfinished pushes of a leader with an expired lease, unless the holder is that leader."""
        self._do(query("end_stuck_pushes"), {"holder": holder})

    def resign(self, holder: str) -> None:
        """Give up leadership at once."""
        self._do(query("resign_pipeline"), {"holder": holder})

    def say(self, key: str, value: str) -> None:
        """Report something about the pipeline to the brokers, as JSON."""
        self._do(query("set_pipeline_stats"), {"key": key, "value": value})

    def totals(self) -> tuple[dict[int, StreamTotals], dict[int, Totals]]:
        """Return the counts of the streams by id, and of the buckets by number."""
        streams: dict[int, StreamTotals] = {}
        buckets: dict[int, Totals] = {}
        for stream, namespace, name, version, bucket, *counts in self._rows(query("stream_totals")):
            if bucket is None:
                streams[stream] = StreamTotals(namespace, name, version, Totals(*counts))
            else:
                buckets[bucket] = Totals(*counts)
        return streams, buckets

    def readable(self) -> Position:
        """Return the last position below the horizon."""
        ((horizon,),) = self._rows(query("log_horizon"))
        return Position(horizon - 1, LARGEST)

    def arrived(self, queue_ids: Sequence[int], after: Position, upto: Position, most: int) -> dict[int, int]:
        """Count the messages of each queue between two positions, up to `most` per queue."""
        params = {"queue_ids": list(queue_ids), "most": most, **between(after, upto)}
        return dict(self._rows(query("count_arrived"), params))

    def latest_seq(self) -> int:
        """The last change of the definitions."""
        ((seq,),) = self._rows(query("latest_seq"))
        return int(seq)

    def set_rates(self, rates: Mapping[str, Sequence[float]]) -> None:
        """Report the rates of streams to the brokers: columns `stream`, `arriving` and so on."""
        self._do(query("set_stream_rates"), dict(rates))

    def _do(self, statement: str, params: dict[str, Any]) -> None:
        self._rows(statement, params)
