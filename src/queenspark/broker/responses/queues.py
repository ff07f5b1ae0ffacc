"""Responses of the queue routes."""

from __future__ import annotations

import msgspec

from .lists import CountedPage, GroupRates, QueueRates


class Configured(msgspec.Struct):
    """A queue after it was created or changed."""

    configured: bool
    queue: str
    namespace: str | None
    task: str | None
    options: ShownOptions


class ShownOptions(msgspec.Struct, rename="camel"):
    """All options of a queue."""

    lease_time: int
    retry_limit: int
    retry_delay: int
    ttl: int
    max_size: int
    priority: int
    delayed_processing: int
    window_buffer: int
    retention_seconds: int
    completed_retention_seconds: int
    retention_enabled: bool
    encryption_enabled: bool
    dead_letter_queue: bool | str
    dlq_after_max_retries: bool
    max_wait_time_seconds: int


class QueueDeleted(msgspec.Struct):
    """A deleted queue; `existed` is false if there was none."""

    deleted: bool
    queue: str
    existed: bool


class MessageCounts(msgspec.Struct):
    """Messages: in the log, not delivered yet, and leased."""

    total: int
    pending: int
    processing: int


class QueueSummary(msgspec.Struct, rename="camel"):
    """A queue with its counts."""

    id: str
    name: str
    namespace: str | None
    task: str | None
    priority: int
    created_at: str
    partitions: int
    messages: MessageCounts
    rates: QueueRates


class QueueList(CountedPage, kw_only=True):
    """A page of the queues."""

    queues: list[QueueSummary]


class QueuePartition(msgspec.Struct, rename="camel"):
    """A partition of a queue."""

    id: str
    name: str
    created_at: str


class QueueGroup(msgspec.Struct, rename="camel"):
    """The progress of a group on a queue."""

    name: str
    lag: int
    processing: int
    oldest: str | None
    rates: GroupRates


class QueueDetail(msgspec.Struct, rename="camel"):
    """A queue with its options, partitions and groups."""

    id: str
    name: str
    namespace: str | None
    task: str | None
    priority: int
    created_at: str
    messages: MessageCounts
    rates: QueueRates
    options: ShownOptions
    partitions: list[QueuePartition]
    partition_count: int
    consumer_groups: list[QueueGroup]
    counted_at: str | None


class WaitingCounts(msgspec.Struct):
    """Messages: in the log, and not delivered yet."""

    total: int
    pending: int


class NamespaceSummary(msgspec.Struct):
    """A namespace with the counts of its queues."""

    namespace: str
    queues: int
    partitions: int
    messages: WaitingCounts


class NamespaceList(CountedPage, kw_only=True):
    """A page of the namespaces."""

    namespaces: list[NamespaceSummary]


class TaskSummary(msgspec.Struct):
    """A task with the counts of its queues."""

    task: str
    queues: int
    partitions: int
    messages: WaitingCounts


class TaskList(CountedPage, kw_only=True):
    """A page of the tasks."""

    tasks: list[TaskSummary]


class AllCounts(msgspec.Struct, rename="camel"):
    """Messages of all queues, and dead letters."""

    total: int
    pending: int
    processing: int
    dead_letter: int


class Overview(msgspec.Struct, rename="camel"):
    """Counts over the whole system."""

    queues: int
    partitions: int
    namespaces: int
    tasks: int
    consumer_groups: int
    messages: AllCounts
    counted_at: str | None
