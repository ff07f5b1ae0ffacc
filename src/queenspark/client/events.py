"""Consumer events for monitoring: one for each state change of a delivery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["delivered", "done", "failed", "renewed", "lost", "unacked", "unreachable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A state change of a delivery, or a failed fetch.

    `delivered`, then one of: `done` (handled and acked), `failed` (the handler raised; nacked), `lost` (the
    lease expired; another consumer gets it), `unacked` (no broker accepted the ack in time). In between
    `renewed`: the lease was extended. `unreachable`: a fetch or a renewal failed and will be retried.
    """

    kind: Kind
    #: The stream or queue.
    name: str
    group: str | None
    #: The window's id, or the lease of a batch of messages.
    id: str = ""
    messages: int = 0
    #: Time since delivery.
    seconds: float = 0.0
    error: BaseException | None = None


Listener = Callable[[Event], object]
