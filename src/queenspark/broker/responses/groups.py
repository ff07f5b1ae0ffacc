"""Responses of the consumer-group routes."""

from __future__ import annotations

import msgspec

from .lists import CountedPage, GroupRates


class GroupSummary(msgspec.Struct, rename="camel"):
    """A group on one queue."""

    name: str
    consumer_group: str
    queue: str
    queue_name: str
    subscription_mode: str
    created_at: str
    partitions: int
    active_leases: int
    lag: int
    processing: int
    oldest_unacked_at: str | None
    lag_seconds: float
    last_acked_at: str | None
    rates: GroupRates


class GroupList(CountedPage, rename="camel", kw_only=True):
    """A page of the groups, one entry per queue of a group."""

    consumer_groups: list[GroupSummary]


class LaggingGroups(CountedPage, rename="camel", kw_only=True):
    """A page of the groups whose oldest unacknowledged message is older than `minLagSeconds`."""

    consumer_groups: list[GroupSummary]
    min_lag_seconds: float


class GroupCursor(msgspec.Struct, rename="camel"):
    """The cursor of a group in one partition."""

    partition: str
    partition_id: str
    handed_out: int
    leased: int
    lease_holder: str | None
    leased_at: str | None
    lease_expires_at: str | None
    available_at: str | None
    last_acked_at: str | None


class GroupQueue(GroupSummary):
    """A group on one queue, with its cursors."""

    places: list[GroupCursor]


class GroupDetail(msgspec.Struct, rename="camel"):
    """A group on all its queues."""

    name: str
    lag: int
    queues: list[GroupQueue]
    counted_at: str | None


class GroupDeleted(msgspec.Struct, rename="camel"):
    """The number of queues that a group was deleted from."""

    success: bool
    consumer_group: str
    queue: str | None
    deleted: bool
    count: int


class Subscribed(msgspec.Struct, rename="camel"):
    """The start of a new group, and the number of queues it applies to."""

    success: bool
    consumer_group: str
    queues: int
    subscription_timestamp: str


class GroupMoved(msgspec.Struct, rename="camel"):
    """A group after a seek; `to` is `end`, `beginning` or a time."""

    success: bool
    consumer_group: str
    queue: str
    partition: str | None
    to: str
