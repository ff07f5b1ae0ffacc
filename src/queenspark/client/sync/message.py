# Made from aio/message.py by `make format`: change that file, not this one.
"""Popped messages: their data, and the acks on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..duration import Duration
from ..messages import Message, Messages
from ..wire import Popped, PoppedMessage
from .acks import Ack, Status, send_acks
from .leases import Lease
from .transport import Transport


class LeasedMessage(Message, kw_only=True):
    """A popped message: call `ack` or `nack` before its lease expires."""

    partition_id: str
    trace_id: str | None
    #: Number of earlier failures.
    retries: int
    group: str | None
    lease: Any  # Lease, opaque to msgspec
    acked: bool = False
    #: An ack or nack was sent and may or may not have arrived.
    in_doubt: bool = False
    #: The last status that the broker accepted or rejected.
    status: Status | None = None

    def ack(self) -> None:
        """Mark it as done: this group will not get it again."""
        send_acks([Ack(self, "completed")])

    def nack(self, reason: str = "") -> None:
        """Mark it as failed: it is redelivered after a delay, and dead-lettered after the retry limit."""
        send_acks([Ack(self, "failed", reason)])

    def renew(self, duration: Duration | None = None) -> None:
        """Extend the lease of the whole batch, by default to its full time from now."""
        self.lease.renew(duration)

    def as_ack(self, status: Status = "completed", reason: str | None = None) -> dict[str, Any]:
        """Return the ack in its wire format, for the ack and transaction routes."""
        return {
            "transactionId": self.transaction_id,
            "partitionId": self.partition_id,
            "leaseId": self.lease.id,
            "consumerGroup": self.group,
            "status": status,
            "error": reason,
        }


class Batch(Messages[LeasedMessage]):
    """The messages of one pop, under one lease."""

    def __init__(self, messages: Iterable[LeasedMessage], lease: Lease) -> None:
        super().__init__(messages)
        self.lease = lease

    @property
    def id(self) -> str:
        """The id of the lease."""
        return self.lease.id

    @property
    def unacked(self) -> list[LeasedMessage]:
        """The messages neither acked nor nacked yet."""
        return [message for message in self if not message.acked]

    @property
    def redelivered(self) -> bool:
        """Whether a message was released or nacked: later ones of the partition have to wait."""
        return any(message.status in ("failed", "retry") for message in self)

    def acks(self, status: Status, reason: str | None = None) -> list[Ack]:
        """Return acks with this status for all messages not acked yet."""
        return [Ack(message, status, reason) for message in self.unacked]

    def ack(self) -> None:
        """Ack all messages not acked yet."""
        send_acks(self.acks("completed"))

    def nack(self, reason: str = "") -> None:
        """Nack all messages not acked yet."""
        send_acks(self.acks("failed", reason))

    def release(self) -> None:
        """Release all messages not acked yet for immediate redelivery to any consumer, without a failure."""
        send_acks(self.acks("retry"))

    def renew(self, duration: Duration | None = None) -> None:
        """Extend the lease, by default to its full time from now."""
        self.lease.renew(duration)


def batch_of(transport: Transport, popped: Popped | None) -> Batch:
    """Build a batch from the response to a pop."""
    if popped is None:
        return Batch([], Lease(transport, "", 0.0))
    lease = Lease(transport, popped.lease_id, popped.lease_timeout_ms / 1000)
    leased = [_leased(message, popped.consumer_group, lease) for message in popped.messages]
    return Batch(leased, lease)


def runs_of(popped: Batch, size: int) -> list[list[Batch]]:
    """Split into batches of this size, one run per partition, in log order."""
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
        acked=not lease.id,  # leaseless: popped with auto_ack
    )
