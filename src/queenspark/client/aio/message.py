"""Messages that were popped: data, and the right to answer them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ..duration import Duration
from ..errors import LeaseLost, QueenError, may_have_happened
from ..messages import Message, Messages
from ..wire import Acked, Popped, PoppedMessage
from .leases import AsyncLease
from .transport import AsyncTransport

Status = Literal["completed", "failed", "retry", "dlq"]
_MOST_ACKS = 10_000  # of one request


class AsyncLeasedMessage(Message, kw_only=True):
    """A message that was popped: answer it with `ack` or `nack` before its lease ends."""

    partition_id: str
    trace_id: str | None
    #: How often it failed before.
    retries: int
    group: str | None
    lease: Any  # AsyncLease; msgspec cannot look into it
    answered: bool = False
    #: An answer was sent, and nobody knows whether it arrived.
    in_doubt: bool = False

    async def ack(self) -> None:
        """It is done and does not come again to this group."""
        await answer([(self, "completed", None)])

    async def nack(self, reason: str = "") -> None:
        """It failed: it comes again after a delay, and after the retry limit it is a dead letter."""
        await answer([(self, "failed", reason)])

    async def renew(self, duration: Duration | None = None) -> None:
        """Lengthen the lease, by default to its whole time from now; the lease of the whole batch."""
        await self.lease.renew(duration)

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


class AsyncBatch(Messages[AsyncLeasedMessage]):
    """What one pop took, under one lease."""

    def __init__(self, messages: Iterable[AsyncLeasedMessage], lease: AsyncLease) -> None:
        super().__init__(messages)
        self.lease = lease

    @property
    def id(self) -> str:
        """The id of its lease."""
        return self.lease.id

    @property
    def unanswered(self) -> list[AsyncLeasedMessage]:
        """The messages that have neither been acked nor nacked."""
        return [message for message in self if not message.answered]

    async def ack(self) -> None:
        """All that are unanswered are done."""
        await answer([(message, "completed", None) for message in self.unanswered])

    async def nack(self, reason: str = "") -> None:
        """All that are unanswered failed."""
        await answer([(message, "failed", reason) for message in self.unanswered])

    async def release(self) -> None:
        """All that are unanswered come again at once, to anybody; this counts as no failure."""
        await answer([(message, "retry", None) for message in self.unanswered])

    async def renew(self, duration: Duration | None = None) -> None:
        """Lengthen the lease, by default to its whole time from now."""
        await self.lease.renew(duration)


def batch_of(transport: AsyncTransport, popped: Popped | None) -> AsyncBatch:
    """The answer of a pop as messages that can be answered."""
    if popped is None:
        return AsyncBatch([], AsyncLease(transport, "", 0.0))
    lease = AsyncLease(transport, popped.lease_id, popped.lease_timeout_ms / 1000)
    leased = [_leased(message, popped.consumer_group, lease) for message in popped.messages]
    return AsyncBatch(leased, lease)


def _leased(message: PoppedMessage, group: str | None, lease: AsyncLease) -> AsyncLeasedMessage:
    return AsyncLeasedMessage(
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


async def answer(answers: Sequence[tuple[AsyncLeasedMessage, Status, str | None]]) -> None:
    """Answer messages; LeaseLost when the broker refuses one. Repeating an answer changes nothing."""
    lost: list[str] = []
    for first in range(0, len(answers), _MOST_ACKS):
        part = answers[first : first + _MOST_ACKS]
        body = {"acknowledgments": [message.as_ack(status, reason) for message, status, reason in part]}
        transport: AsyncTransport = part[0][0].lease.transport
        try:
            taken = await transport.call("POST", "ack", "batch", body=body, kind=list[Acked])
        except QueenError as error:
            for message, _, _ in part:
                message.in_doubt = message.in_doubt or may_have_happened(error)
            raise
        for (message, _, _), given in zip(part, taken, strict=True):
            message.answered = True
            if not given.success:
                lost.append(f"{message.transaction_id}: {given.error}")
    if lost:
        raise LeaseLost(f"{len(lost)} of {len(answers)} answers were refused, first {lost[0]}")
