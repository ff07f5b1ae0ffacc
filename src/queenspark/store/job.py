"""A job: its stored form, its desired form, and its condition."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from .definitions import Body, Outside, has_windows, job_name

State = Literal["running", "paused", "failed", "finished"]
How = Literal["in place", "at a boundary", "by position"]
"""How a job is replaced: within its version, or by a new one at a window boundary or at a position."""


class Job(msgspec.Struct, frozen=True):
    """A job as stored, with the body of its newest version."""

    id: int
    namespace: str
    name: str
    queue_id: int
    queue: str
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    body: Body | None  # None: a stream of windows

    @property
    def full_name(self) -> str:
        """Its name in statements."""
        return job_name(self.namespace, self.name)

    @property
    def definition(self) -> Body:
        """The body of a job."""
        assert self.body is not None, f"{self.full_name} is a stream"
        return self.body

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of windows, which reads a queue as jobs do."""
        return self.body is None or has_windows(self.body)

    @property
    def query(self) -> dict[str, Any]:
        """Its stored query."""
        assert self.definition.query is not None
        return self.definition.query

    @property
    def statement(self) -> str:
        """Its statement."""
        return str(self.query["statement"])


class WantedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The desired form of a job. `spec` is a WindowSpec as JSON, or empty."""

    namespace: str
    name: str
    query: dict[str, Any]
    spec: dict[str, Any]
    queues: tuple[str, ...]
    start: str = "earliest"
    #: How long its rows are kept, 0: without limit; None: as configured on its queue.
    retention_seconds: int | None = None
    #: An external source or sink; with either, the job has its own Spark query.
    reads: Outside | None = None
    writes: Outside | None = None


class Condition(NamedTuple):
    """The condition of a job: its state, its failure, and the pipeline's reports."""

    state: State
    last_error: str | None
    progress: dict[str, Any]
    rates: dict[str, Any]
    #: For a job with its own query: its read progress (`report`), and when it finished.
    run: dict[str, Any] | None = None


class Row(NamedTuple):
    """A row of a job, with its position."""

    txid: int
    id: int
    payload: str


def to_job(row: dict[str, Any]) -> Job:
    """Build a job from a database row."""
    body = row["body"]
    return Job(**{**row, "body": None if body is None else msgspec.convert(body, Body)})


def error_of(trouble: dict[str, Any] | None) -> str | None:
    """Return why a job failed, from a row of `job_troubles`."""
    if trouble is None:
        return None
    if trouble["gone"]:
        names = ", ".join(trouble["gone"])
        return f"the source {names} does not exist: its queue was deleted"
    return str(trouble["error"])
