"""What health, metrics, status and maintenance answer."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from .lists import CountedPage
from .queues import MessageCounts


class Healthy(msgspec.Struct, rename="camel"):
    """Broker and database work."""

    status: Literal["healthy"]
    database: Literal["connected"]
    version: str
    postgres: str | None
    uptime_seconds: float


class Unhealthy(msgspec.Struct):
    """The database does not answer."""

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
    """Which maintenance modes are on."""

    push: bool
    pop: bool


class SystemStatus(msgspec.Struct, rename="camel"):
    """Everything at a glance."""

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
    """How far a group is behind on a queue."""

    queue: str
    consumer_group: str
    lag: int
    processing: int
    oldest_unacked_at: str | None


class Analytics(CountedPage, kw_only=True):
    """The lag of a page of the groups, beside the broker's counters."""

    groups: list[GroupLag]
    metrics: dict[str, float]


class Maintenance(msgspec.Struct, rename="camel"):
    """The maintenance modes, and how many messages are staged."""

    maintenance_mode: bool
    pop_maintenance_mode: bool
    enabled: bool
    staged: int
    success: bool | UnsetType = UNSET
    appended: int | UnsetType = UNSET
