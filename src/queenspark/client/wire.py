"""The broker's answers, as far as the client reads them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from .messages import Message


class PoppedMessage(Message, kw_only=True, rename="camel"):
    """A message of a pop."""

    partition_id: str
    trace_id: str | None = None
    retry_count: int = 0


class Popped(msgspec.Struct, rename="camel"):
    """The answer of a pop."""

    lease_id: str
    lease_timeout_ms: int
    consumer_group: str | None
    messages: list[PoppedMessage]


class Acked(msgspec.Struct, rename="camel"):
    """The answer to an ack."""

    success: bool
    transaction_id: str
    dlq: bool = False
    error: str | None = None


class Transacted(msgspec.Struct, rename="camel"):
    """The answer to a transaction; `code` says why it was refused."""

    success: bool
    error: str | None = None
    code: str | None = None


class PushedItem(msgspec.Struct):
    """What became of one item of a push."""

    message_id: str
    transaction_id: str
    partition_id: str
    status: str


class SealedWindow(msgspec.Struct, rename="camel", kw_only=True):
    """A window of a poll."""

    id: str
    lease_id: str
    lease_timeout_ms: int
    stream: str
    namespace: str
    consumer_group: str
    key: str
    start: datetime
    end: datetime
    count: int
    revision: int
    version: int
    retry_count: int
    partition_id: str
    transaction_id: str
    messages: list[Message] | None = None  # left out when they were not wanted
    replaces: list[str] = []
    aggregates: dict[str, Any] = {}
    next_cursor: str | None = None


class Polled(msgspec.Struct):
    """The answer of a poll for one window."""

    window: SealedWindow


class PolledWindows(msgspec.Struct):
    """The answer of a poll for up to a number of windows."""

    windows: list[SealedWindow]


class WindowPage(msgspec.Struct, rename="camel"):
    """More messages of a window."""

    messages: list[Message]
    next_cursor: str | None = None
