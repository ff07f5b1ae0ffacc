"""Messages that exhausted their retries."""

from __future__ import annotations

from datetime import datetime

import msgspec

from .messages import Message


class DeadLetter(Message, kw_only=True, rename="camel"):
    """A message that exceeded its retry limit, with the last failure reason."""

    partition_id: str
    consumer_group: str | None = None
    error_message: str | None = None
    retry_count: int = 0
    failed_at: datetime


class DeadLetters(msgspec.Struct):
    """A page of dead letters."""

    messages: list[DeadLetter]
    total: int
