"""Responses of the message, dead-letter and trace routes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

Status = Literal["pending", "processing", "completed", "dead_letter"]


class Message(msgspec.Struct, rename="camel"):
    """A message of the log."""

    id: str
    transaction_id: str
    trace_id: str | None
    queue: str
    partition: str
    partition_id: str
    namespace: str | None
    task: str | None
    status: Status
    data: Raw
    created_at: str
    headers: dict[str, str] | UnsetType = UNSET
    #: The caller who pushed it, with access control on.
    producer_sub: str | None = None


class MessageList(msgspec.Struct):
    """A page of messages.

    `complete` is false if more messages may have the status: not all of them were checked.
    """

    messages: list[Message]
    limit: int
    offset: int
    complete: bool


class LoggedMessage(msgspec.Struct, rename="camel", gc=False):
    """A message as stored in the log."""

    transaction_id: str
    trace_id: str | None
    partition: str
    created_at: str
    data: Raw
    headers: dict[str, str] | UnsetType = UNSET


class LogPage(msgspec.Struct):
    """Messages of a queue in order. `next` is the position after them, `end` that of the last message."""

    messages: list[LoggedMessage]
    next: str
    end: str | None


class DeadLetter(msgspec.Struct, rename="camel"):
    """A message that exhausted its retries in a group."""

    id: str
    message_id: str
    transaction_id: str
    trace_id: str | None
    partition_id: str
    queue: str
    queue_name: str
    partition: str
    partition_name: str
    consumer_group: str
    error_message: str | None
    retry_count: int
    data: Raw
    created_at: str
    failed_at: str
    status: Literal["dead_letter"] = "dead_letter"
    headers: dict[str, str] | UnsetType = UNSET
    #: The caller who pushed it, with access control on.
    producer_sub: str | None = None


class DeadLetterList(msgspec.Struct):
    """A page of dead letters."""

    messages: list[DeadLetter]
    total: int
    limit: int
    offset: int


class MessageDetail(msgspec.Struct, rename="camel"):
    """A message with its dead letters, or the remaining dead letter."""

    id: str
    transaction_id: str
    trace_id: str | None
    queue: str
    partition: str
    partition_id: str
    status: Status
    data: Raw
    created_at: str
    dead_letters: list[DeadLetter]
    headers: dict[str, str] | UnsetType = UNSET
    #: The caller who pushed it, with access control on.
    producer_sub: str | None = None
    namespace: str | UnsetType | None = UNSET
    task: str | UnsetType | None = UNSET
    message_id: str | UnsetType = UNSET
    queue_name: str | UnsetType = UNSET
    partition_name: str | UnsetType = UNSET
    consumer_group: str | UnsetType = UNSET
    error_message: str | UnsetType | None = UNSET
    retry_count: int | UnsetType = UNSET
    failed_at: str | UnsetType = UNSET


class MessageDeleted(msgspec.Struct, rename="camel"):
    """A deleted message."""

    success: bool
    deleted: bool
    transaction_id: str
    partition_id: str


class MessageRetried(msgspec.Struct, rename="camel"):
    """A dead letter returned to its groups for redelivery."""

    success: bool
    transaction_id: str
    partition_id: str
    count: int


class Counted(msgspec.Struct):
    """The number of affected dead letters."""

    success: bool
    count: int


class TraceAdded(msgspec.Struct, rename="camel"):
    """The id of a new trace."""

    success: bool
    trace_id: str


class Trace(msgspec.Struct, rename="camel"):
    """A note on a message."""

    id: str
    transaction_id: str
    partition_id: str
    queue: str
    partition: str
    consumer_group: str | None
    event_type: str
    trace_names: list[str]
    data: Any
    created_at: str


class TraceList(msgspec.Struct):
    """The traces of a message."""

    traces: list[Trace]


class TracePage(msgspec.Struct):
    """A page of the traces of a name."""

    traces: list[Trace]
    total: int
    limit: int
    offset: int


class TraceName(msgspec.Struct, rename="camel"):
    """A name with the number of its traces."""

    name: str
    traces: int
    last_at: str


class TraceNames(msgspec.Struct):
    """Names of traces."""

    names: list[TraceName]
