"""Responses of the stream routes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ...formats.definition import ShownDefinition
from ..window import WindowRecord
from .lists import CountedPage, GroupRates


class StreamDefined(msgspec.Struct):
    """A stream after its definition.

    With the output `rows` it is a job: `queue` has its rows, and `statement` is its SQL.
    """

    success: bool
    stream_id: str
    name: str
    namespace: str
    version: int
    output: Literal["windows", "rows"]
    queue: str | UnsetType = UNSET
    statement: str | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class Window(msgspec.Struct, rename="camel"):
    """Fields common to all responses about a window."""

    id: str
    key: str
    start: str
    end: str
    count: int
    revision: int
    version: int
    replaces: list[str]


class LeasedWindow(Window):
    """A leased window with its messages (unless `messages` was false); `nextCursor` is the next page.

    `aggregates` is present if the stream computes some.
    """

    stream: str
    namespace: str
    lease_id: str
    lease_timeout_ms: int
    consumer_group: str
    partition_id: str
    transaction_id: str
    retry_count: int
    messages: list[WindowRecord] | UnsetType = UNSET
    next_cursor: str | UnsetType = UNSET
    aggregates: dict[str, Any] | UnsetType = UNSET


class Polled(msgspec.Struct):
    """The next window, or `windows` if the request has `maxWindows`."""

    window: LeasedWindow | UnsetType = UNSET
    windows: list[LeasedWindow] | UnsetType = UNSET


class WindowPage(msgspec.Struct, rename="camel"):
    """A page of a window's messages."""

    window_id: str
    messages: list[WindowRecord]
    next_cursor: str | None


class WindowAcked(msgspec.Struct):
    """An accepted ack; without `dlq` if it was a repetition."""

    success: bool
    acked: bool
    dlq: bool | UnsetType = UNSET


class LeaseRenewed(msgspec.Struct):
    """The new end of a window's lease."""

    success: bool
    lease_expires_at: str


class StreamMoved(msgspec.Struct, rename="camel"):
    """A group after a seek in a stream."""

    success: bool
    consumer_group: str
    timestamp: str


class Retention(msgspec.Struct, rename="camel"):
    """The oldest messages that a stream still needs, and whether retention waits for it."""

    needs_since: str | None
    held_since: str | None
    held_seconds: float


class StreamRates(msgspec.Struct, rename="camel"):
    """Rates of a stream over the last minute; a backpressure above 1 means that it falls behind."""

    arriving_per_second: float
    processed_per_second: float
    sealed_per_second: float
    late_per_second: float
    backpressure: float


class Progress(msgspec.Struct, rename="camel"):
    """The progress of a stream, and its counts."""

    watermark: str | None
    lag_seconds: float
    open_windows: int
    records: int
    sealed_windows: int
    late: int
    dropped: int
    dead: int
    updated_at: str | None
    rates: StreamRates
    retention: Retention


class StreamSummary(ShownDefinition, rename="camel", kw_only=True):
    """A stream with its definition, and with `progress` once the pipeline has loaded it."""

    id: str
    name: str
    namespace: str
    version: int
    window_queue: str
    source_queues: list[str]
    created_at: str
    updated_at: str
    active_leases: int
    consumer_groups: list[str]
    progress: Progress | UnsetType = UNSET


class StreamList(CountedPage, kw_only=True):
    """A page of the streams."""

    streams: list[StreamSummary]


class StreamGroup(msgspec.Struct, rename="camel"):
    """The progress of a group in a stream."""

    name: str
    lag: int
    processing: int
    oldest_unacked_at: str | None
    last_acked_at: str | None
    rates: GroupRates


class StreamDetail(StreamSummary, kw_only=True):
    """A stream with its groups; `lastError` is the reason why its computation stopped."""

    groups: list[StreamGroup]
    last_error: str | None


class StreamProgress(Progress):
    """The progress of one stream."""

    id: str
    name: str
    namespace: str


class Bucket(msgspec.Struct, rename="camel"):
    """A bucket of keys; `watermark` is that of the most delayed stream."""

    bucket: int
    batch_records: int
    batch_seconds: float
    watermark: str | None
    open_windows: int
    records: int
    sealed_windows: int
    late: int
    dropped: int
    dead: int
    updated_at: str | None


class Pipeline(msgspec.Struct):
    """The leader, the reports of its queries by name (`query` is the streams query), and the buckets."""

    active: bool
    holder: str | None
    epoch: int
    query: dict[str, Any]
    queries: dict[str, dict[str, Any]]
    buckets: list[Bucket]


class StreamStats(msgspec.Struct, rename="camel"):
    """Counts over all streams, the pipeline, and the progress of each stream."""

    streams: int
    consumer_groups: int
    active_leases: int
    open_windows: int
    records: int
    sealed_windows: int
    late: int
    dropped: int
    dead: int
    lag_seconds: float
    pipeline: Pipeline
    by_stream: list[StreamProgress]


class StreamConsumer(msgspec.Struct, rename="camel"):
    """The progress of a group in one key."""

    consumer_group: str
    stream_key: str
    last_acked_window_end: str | None
    total_windows_consumed: int
    last_consumed_at: str | None


class StreamConsumers(msgspec.Struct):
    """A page of keys."""

    consumers: list[StreamConsumer]


class ActiveWindow(Window):
    """A window that a group has not acked; without a group if the stream has none."""

    state: Literal["leased", "retrying", "waiting", "dead"]
    consumer_group: str | None
    attempts: int
    error: str | None
    sealed_at: str
    lease_holder: str | None
    leased_at: str | None
    lease_expires_at: str | None
    available_at: str | None
    failed_at: str | None
    aggregates: dict[str, Any] | UnsetType = UNSET


class ActiveWindows(msgspec.Struct):
    """A page of windows."""

    windows: list[ActiveWindow]


class SourceRecord(msgspec.Struct, rename="camel"):
    """A source record, with the fields that still exist."""

    key: str
    version: int
    message_id: str
    queue: str | None
    partition: str | None
    transaction_id: str | None
    created_at: str | None
    seen_at: str


class DeadRecord(SourceRecord):
    """An unreadable record, or a window that could not be computed.

    `reason` is null for a record without a usable event time. A window has its times, and no message.
    """

    reason: str | None
    window_start: str | None
    window_end: str | None


class DeadRecords(msgspec.Struct):
    """A page of records."""

    dead: list[DeadRecord]


class LateRecord(SourceRecord):
    """A record that arrived after its window was sealed."""

    time: str
    closed_up_to: str
    dropped: bool


class LateRecords(msgspec.Struct):
    """A page of late records."""

    late: list[LateRecord]


class StreamDeleted(msgspec.Struct):
    """A deleted stream; `existed` is false if there was none."""

    deleted: bool
    name: str
    namespace: str
    existed: bool


class StreamKey(msgspec.Struct):
    """A key with its share of the stream's newest windows."""

    key: str
    windows: int


class StreamKeys(msgspec.Struct):
    """A page of the keys of a stream, busiest first."""

    keys: list[StreamKey]
    total: int
    limit: int
    offset: int


class WindowGroup(msgspec.Struct, rename="camel"):
    """The state of a window in a group."""

    consumer_group: str
    state: Literal["waiting", "leased", "acked", "retrying", "dead", "skipped"]
    attempts: int
    error: str | None
    lease_holder: str | None
    leased_at: str | None
    lease_expires_at: str | None
    available_at: str | None
    failed_at: str | None


class TimelineWindow(Window):
    """A sealed window, with its state in each group."""

    partition_id: str
    transaction_id: str
    sealed_at: str
    groups: list[WindowGroup]
    aggregates: dict[str, Any] | UnsetType = UNSET


class OpenWindow(msgspec.Struct, rename="camel"):
    """A window not sealed yet, according to the records that the pipeline has read."""

    key: str
    start: str
    end: str
    count: int
    sealed_at_about: str | None


class Timeline(msgspec.Struct, rename="camel"):
    """Windows of some keys; `hasMore` lists the keys with older ones in the same range.

    `openComplete`: whether `open` has all open time windows.
    """

    now: str
    safe_time: str | None
    watermark: str | None
    grace_ms: int
    keys: list[str]
    total_keys: int
    windows: list[TimelineWindow]
    has_more: list[str]
    open: list[OpenWindow]
    open_windows: int
    open_complete: bool


class WindowDetail(TimelineWindow, kw_only=True):
    """A window with a page of its messages."""

    messages: list[WindowRecord]
    next_cursor: str | None


class StreamVersion(ShownDefinition, rename="camel", kw_only=True):
    """The definition of a version."""

    version: int
    source_queues: list[str]
    created_at: str


class StreamVersions(msgspec.Struct):
    """The versions of a stream, newest first."""

    versions: list[StreamVersion]
