"""Responses of the health, metrics, status and maintenance routes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .lists import CountedPage
from .queues import MessageCounts


class Healthy(msgspec.Struct, rename="camel"):
    """Broker and database are available."""

    status: Literal["healthy"]
    database: Literal["connected"]
    version: str
    postgres: str | None
    uptime_seconds: float


class Unhealthy(msgspec.Struct):
    """The database is not available."""

    status: Literal["unhealthy"]
    database: Literal["disconnected"]
    version: str
    error: str


class BrokerMetrics(msgspec.Struct, rename="camel"):
    """Counters and gauges without labels."""

    uptime_seconds: float
    metrics: dict[str, float]


class HorizonHolder(msgspec.Struct):
    """The oldest transaction in flight, which holds safe time back."""

    pid: int
    application: str | None
    state: str | None
    seconds: float | None


class Modes(msgspec.Struct):
    """The active maintenance modes."""

    push: bool
    pop: bool


class SystemStatus(msgspec.Struct, rename="camel"):
    """A summary of the system."""

    version: str
    queues: int
    partitions: int
    messages: MessageCounts
    dead_letters: int
    counted_at: str | None
    safe_time: str | None
    horizon_held_by: HorizonHolder | None
    maintenance: Modes
    staged: int
    parked_polls: int


class GroupLag(msgspec.Struct, rename="camel"):
    """The lag of a group on a queue."""

    queue: str
    consumer_group: str
    lag: int
    processing: int
    oldest_unacked_at: str | None


class Analytics(CountedPage, kw_only=True):
    """A page of the groups with their lag, and the broker's counters."""

    groups: list[GroupLag]
    metrics: dict[str, float]


class Maintenance(msgspec.Struct, rename="camel"):
    """The maintenance modes, and the number of staged messages."""

    maintenance_mode: bool
    pop_maintenance_mode: bool
    enabled: bool
    staged: int
    success: bool | UnsetType = UNSET
    appended: int | UnsetType = UNSET


class AttentionItem(msgspec.Struct):
    """A problem; `kind`, `name` and `namespace` identify its subject."""

    severity: Literal["error", "warning", "notice"]
    code: str
    text: str
    kind: Literal["system", "job", "stream", "queue", "dlq"]
    name: str | None
    namespace: str | None
    since: str | None


class AttentionList(msgspec.Struct):
    """Problems that need attention, worst first."""

    attention: list[AttentionItem]
    total: int


class SeriesStep(msgspec.Struct, rename="camel"):
    """A step of the last hour: rates over it, and gauges at its end."""

    at: str
    pushed_per_second: float
    popped_per_second: float
    acked_per_second: float
    failed_per_second: float
    delivered_per_second: float
    sealed_per_second: float
    open_windows: float
    lag: float
    dead_letters: float
    safe_time_lag: float
    batch_seconds: float
    batch_rows_per_second: float
    backpressure: float
    state_bytes: float


class Series(msgspec.Struct, rename="camel"):
    """The steps, oldest first."""

    step_seconds: float
    series: list[SeriesStep]


class BrokerProcess(msgspec.Struct, rename="camel"):
    """A running broker."""

    name: str
    version: str
    address: str | None
    started_at: str
    seen_at: str


class PipelineProcess(BrokerProcess):
    """A running pipeline; standby unless leading."""

    leading: bool


class PostgresApplication(msgspec.Struct, rename="camel"):
    """The connections of an application to this database."""

    application: str
    connections: int
    active: int
    oldest_transaction_seconds: float | None


class PostgresTable(msgspec.Struct, rename="camel"):
    """A table with its indexes; row counts are estimates."""

    name: str
    bytes: int
    rows: int
    dead_rows: int


class PostgresInfo(msgspec.Struct, rename="camel"):
    """The PostgreSQL server."""

    version: str
    database_bytes: int
    connections: int
    max_connections: int
    applications: list[PostgresApplication]
    tables: list[PostgresTable]


class ShownSetting(msgspec.Struct, rename="camel"):
    """A setting of the responding broker; secrets show only whether they are set."""

    name: str
    value: Any
    is_default: bool
    about: str


class SystemInfo(msgspec.Struct):
    """All running processes. `queries` are the reports of the pipeline's queries, by name."""

    brokers: list[BrokerProcess]
    pipelines: list[PipelineProcess]
    queries: dict[str, dict[str, Any]]
    postgres: PostgresInfo
    settings: list[ShownSetting]
