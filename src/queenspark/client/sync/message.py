# Made from aio/message.py by `make format`: change that file, not this one.
"""Messages that were popped: data, and the right to answer them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..duration import Duration
from ..messages import Message, Messages
from ..wire import Popped, PoppedMessage
from .answers import Answer, Status, answer
from .leases import Lease
from .transport import Transport


class LeasedMessage(Message, kw_only=True):
    """A message that was popped: answer it with `ack` or `nack` before its lease ends."""

    partition_id: str
    trace_id: str | None
    #: How often it failed before.
    retries: int
    group: str | None
    lease: Any  # Lease; msgspec cannot look into it
    answered: bool = False
    #: An answer was sent, and nobody knows whether it arrived.
    in_doubt: bool = False
    #: The last answer that was taken or refused.
    status: Status | None = None

    def ack(self) -> None:
        """It is done and does not come again to this group."""
        answer([Answer(self, "completed")])

    def nack(self, reason: str = "") -> None:
        """It failed: it comes again after a delay, and after the retry limit it is a dead letter."""
        answer([Answer(self, "failed", reason)])

    def renew(self, duration: Duration | None = None) -> None:
        """Lengthen the lease, by default to its whole time from now; the lease of the whole batch."""
        self.lease.renew(duration)

    def as_ack(self, status: Status = "completed", reason: str | None = None) -> dict[str, Any]:
        """The answer to it, as a transaction and the broker want it."""
        return {
            "transactionId": self.transaction_id,
            "partitionId": self.partition_id,
            "leaseId": self.lease.id,
            "consumerGroup": self.group,
            "status": status,
            "error": reason,
        }


class Batch(Messages[LeasedMessage]):
    """What one pop took, under one lease."""

    def __init__(self, messages: Iterable[LeasedMessage], lease: Lease) -> None:
        super().__init__(messages)
        self.lease = lease

    @property
    def id(self) -> str:
        """The id of its lease."""
        return self.lease.id

    @property
    def unanswered(self) -> list[LeasedMessage]:
        """The messages that have neither been acked nor nacked."""
        return [message for message in self if not message.answered]

    @property
    def comes_again(self) -> bool:
        """Whether one of its messages was given back: those behind it in the partition have to wait."""
        return any(message.status in ("failed", "retry") for message in self)

    def answers(self, status: Status, reason: str | None = None) -> list[Answer]:
        """This answer to all that are unanswered."""
        return [Answer(message, status, reason) for message in self.unanswered]

    def ack(self) -> None:
        """All that are unanswered are done."""
        answer(self.answers("completed"))

    def nack(self, reason: str = "") -> None:
        """All that are unanswered failed."""
        answer(self.answers("failed", reason))

    def release(self) -> None:
        """All that are unanswered come again at once, to anybody; this counts as no failure."""
        answer(self.answers("retry"))

    def renew(self, duration: Duration | None = None) -> None:
        """Lengthen the lease, by default to its whole time from now."""
        self.lease.renew(duration)


def batch_of(transport: Transport, popped: Popped | None) -> Batch:
    """The answer of a pop as messages that can be answered."""
    if popped is None:
        return Batch([], Lease(transport, "", 0.0))
    lease = Lease(transport, popped.lease_id, popped.lease_timeout_ms / 1000)
    leased = [_leased(message, popped.consumer_group, lease) for message in popped.messages]
    return Batch(leased, lease)


def runs_of(popped: Batch, size: int) -> list[list[Batch]]:
    """The messages of each partition as batches of this size, in log order."""
    partitions: dict[str, list[LeasedMessage]] = {}
    for message in popped:
        partitions.setdefault(message.partition_id, []).append(message)
    return [
        [Batch(found[first : first + size], popped.lease) for first in range(0, len(found), size)]
        for found in partitions.values()
    ]


def _leased(message: PoppedMessage, group: str | None, lease: Lease) -> LeasedMessage:
    return LeasedMessage(
        id=message.id,
        transaction_id=message.transaction_id,
        queue=message.queue,
        partition=message.partition,
        data=message.data,
        created_at=message.created_at,
        headers=message.headers,
        partition_id=message.partition_id,
        trace_id=message.trace_id,
        retries=message.retry_count,
        group=group,
        lease=lease,
        answered=not lease.id,  # popped with auto_ack
    )
