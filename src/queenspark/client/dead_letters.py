"""Messages that nobody could handle."""

from __future__ import annotations

from datetime import datetime

import msgspec

from .messages import Message


class DeadLetter(Message, kw_only=True, rename="camel"):
    """A message that failed too often, with the last reason."""

    partition_id: str
    consumer_group: str | None = None
    error_message: str | None = None
    retry_count: int = 0
    failed_at: datetime


class DeadLetters(msgspec.Struct):
    """A page of them."""

    messages: list[DeadLetter]
    total: int
