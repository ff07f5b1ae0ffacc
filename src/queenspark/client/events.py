"""What a consumer tells those who count: an event for everything that happens to a delivery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["delivered", "done", "failed", "renewed", "lost", "unanswered", "unreachable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to what a consumer took, or tried to take.

    `delivered`, then one of: `done` (handled and acked), `failed` (the handler raised; nacked), `lost` (the
    lease was over, so it goes to another consumer), `unanswered` (no broker took the answer in time).
    Meanwhile `renewed`: its lease was. `unreachable`: nothing could be taken, or a lease not be renewed; the
    consumer tries again.
    """

    kind: Kind
    #: The stream or queue.
    name: str
    group: str | None
    #: The window's id, or the lease of a batch of messages.
    id: str = ""
    messages: int = 0
    #: How long it was in hand.
    seconds: float = 0.0
    error: BaseException | None = None


Listener = Callable[[Event], object]
