"""The broker's responses, limited to the fields that the client reads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from .messages import Message

PIPELINE_HEADER = "Queenspark-Pipeline"
"""Whether a pipeline is leading, in empty responses to polls and in those to SELECTs: `leading` or `none`."""


class PoppedMessage(Message, kw_only=True, rename="camel"):
    """A popped message."""

    partition_id: str
    trace_id: str | None = None
    retry_count: int = 0


class Popped(msgspec.Struct, rename="camel"):
    """The response to a pop."""

    lease_id: str
    lease_timeout_ms: int
    consumer_group: str | None
    messages: list[PoppedMessage]


class Acked(msgspec.Struct, rename="camel"):
    """The response to an ack."""

    success: bool
    transaction_id: str
    dlq: bool = False
    error: str | None = None


class Transacted(msgspec.Struct, rename="camel"):
    """The response to a transaction; `code` is the reason for a rejection."""

    success: bool
    error: str | None = None
    code: str | None = None


class PushedItem(msgspec.Struct):
    """The result of one pushed item."""

    message_id: str
    transaction_id: str
    partition_id: str
    status: str


class SealedWindow(msgspec.Struct, rename="camel", kw_only=True):
    """A polled window."""

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
    messages: list[Message] | None = None  # omitted on request
    replaces: list[str] = []
    aggregates: dict[str, Any] = {}
    next_cursor: str | None = None


class Polled(msgspec.Struct):
    """The response to a poll for one window."""

    window: SealedWindow


class PolledWindows(msgspec.Struct):
    """The response to a poll for several windows."""

    windows: list[SealedWindow]


class WindowPage(msgspec.Struct, rename="camel"):
    """A page of a window's messages."""

    messages: list[Message]
    next_cursor: str | None = None
