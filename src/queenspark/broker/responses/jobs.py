"""Responses of SQL statements and of the job routes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .streams import DeadRecord

State = Literal["running", "paused", "failed", "finished"]


class SqlColumn(msgspec.Struct):
    """A column of a result."""

    name: str
    type: str


class SqlResult(msgspec.Struct):
    """The effect of one statement (`changed`, with the canonical `statement`), or its rows."""

    kind: Literal[
        "create_stream", "declare_stream", "create_source", "create_sink", "insert", "drop_stream",
        "drop_source", "drop_sink", "pause_job", "resume_job", "restart_job", "show", "describe", "explain",
        "select",
    ]  # fmt: skip
    name: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    changed: bool | UnsetType = UNSET
    #: How an existing job is replaced.
    how: Literal["in place", "at a boundary", "by position"] | UnsetType = UNSET
    statement: str | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    #: Rows pushed by an INSERT.
    count: int | UnsetType = UNSET
    #: Objects removed by a DROP.
    dropped: list[str] | UnsetType = UNSET
    columns: list[SqlColumn] | UnsetType = UNSET
    rows: list[list[Any]] | UnsetType = UNSET
    #: Details from DESCRIBE, in addition to the columns.
    details: dict[str, Any] | UnsetType = UNSET


class SqlResponse(msgspec.Struct):
    """One result per statement, in order."""

    results: list[SqlResult]


class JobShown(msgspec.Struct, rename="camel"):
    """A job with its condition and counts."""

    name: str
    namespace: str
    queue: str
    state: State
    statement: str
    version: int
    records_per_second: float
    rows_per_second: float
    lag_seconds: float
    watermark: str | None
    open_windows: int
    late: int
    dropped: int
    dead: int
    last_error: str | None
    runs_in: Literal["streams", "own query"]
    created_at: str
    updated_at: str


class JobRetention(msgspec.Struct, rename="camel"):
    """The time from which messages are retained for a job, and since when beyond their own retention."""

    needs_since: str | None
    held_since: str | None
    held_seconds: float
    #: Records removed before the job read them.
    removed: int


class JobRun(msgspec.Struct, rename="camel", omit_defaults=True):
    """Read and write progress of a job with its own query.

    `files` and `bytes` apply to files, `partitions` and `lagRecords` to Kafka, `position` to queues.
    """

    records: int
    rows: int
    dead: int
    finished_at: str | None
    files: int | None = None
    bytes: int | None = None
    files_left: int | None = None
    bytes_left: int | None = None
    #: When the oldest file that is not read yet was changed.
    unread_since: str | None = None
    partitions: int | None = None
    lag_records: int | None = None
    position: str | None = None


class JobDetail(JobShown):
    """A job with its columns, sources, retention, and run if it has its own query."""

    columns: list[SqlColumn]
    rows: Literal["append", "updating"]
    #: Why this version was started automatically.
    notice: str | None
    sources: list[str]
    retention: JobRetention
    run: JobRun | None


class JobList(msgspec.Struct):
    """A page of the jobs."""

    jobs: list[JobShown]
    total: int
    limit: int
    offset: int


class JobDeleted(msgspec.Struct):
    """The jobs and streams that were deleted."""

    deleted: bool
    dropped: list[str]


class JobDeadList(msgspec.Struct):
    """Dead records and rows of a job, the newest first."""

    dead: list[DeadRecord]
