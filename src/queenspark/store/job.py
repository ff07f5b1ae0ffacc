"""A job: as stored, as wanted, and what is known of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from .definitions import Body, Outside, has_windows, job_name

State = Literal["running", "paused", "failed", "finished"]
How = Literal["in place", "at a boundary", "by position"]
"""How a job changes: within its version, or with a new one that takes over as windows do or at a position."""


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
        """Its name as statements have it."""
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
        """What it computes, as it is kept."""
        assert self.definition.query is not None
        return self.definition.query

    @property
    def statement(self) -> str:
        """The statement that made it."""
        return str(self.query["statement"])


class WantedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a statement wants it. `spec` is a WindowSpec as JSON, or empty."""

    namespace: str
    name: str
    query: dict[str, Any]
    spec: dict[str, Any]
    queues: tuple[str, ...]
    start: str = "earliest"
    #: How long its rows are kept, 0: without limit; None: as its queue is configured.
    retention_seconds: int | None = None
    #: A source or sink outside; with either, the job has a Spark query of its own.
    reads: Outside | None = None
    writes: Outside | None = None


class Condition(NamedTuple):
    """What is known of a job: its state, why it failed, and what the pipeline says of it."""

    state: State
    last_error: str | None
    progress: dict[str, Any]
    rates: dict[str, Any]
    #: Of a job with a query of its own: what it has read (`report`), and when it has finished.
    run: dict[str, Any] | None = None


class Row(NamedTuple):
    """A row of a job, with its position."""

    txid: int
    id: int
    payload: str


def to_job(row: dict[str, Any]) -> Job:
    """A job from a row of the database."""
    body = row["body"]
    return Job(**{**row, "body": None if body is None else msgspec.convert(body, Body)})


def error_of(trouble: dict[str, Any] | None) -> str | None:
    """Why a job has failed, from a row of `job_troubles`."""
    if trouble is None:
        return None
    if trouble["gone"]:
        names = ", ".join(trouble["gone"])
        return f"the source {names} is gone: its queue was deleted"
    return str(trouble["error"])
