"""Scope checks for names that have to be looked up first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from ..store.definitions import stream_of_queue
from ..store.delivery import Ack
from .broker import Broker
from .errors import not_found
from .http import Call, Right


def stream_name(namespace: str, name: str) -> str:
    """The name of a stream in scopes."""
    return f"{namespace}/{name}"


async def within_reach(broker: Broker, call: Call, partition_ids: Iterable[int], right: Right) -> set[int]:
    """Filter partitions to those whose queue the caller has a right on."""
    wanted = set(partition_ids)
    if call.caller.scopes is None:
        return wanted
    names = await broker.store.catalog.names_of(wanted)
    return {id_ for id_, (_, queue) in names.items() if call.caller.may(right, queue)}


async def check_partition(broker: Broker, call: Call, partition_id: int) -> None:
    """Raise 404 if the caller has no right on a partition, as if it did not exist."""
    if partition_id not in await within_reach(broker, call, [partition_id], call.right):
        raise not_found(f"partition {partition_id} does not exist")


async def reachable_acks(broker: Broker, call: Call, acks: Sequence[Ack]) -> list[Ack]:
    """Redirect acks outside the caller's scopes to a partition that does not exist."""
    if acks:
        call.need(Right.QUEUE_CONSUME)
    if call.caller.scopes is None:
        return list(acks)
    known = await within_reach(broker, call, [ack.partition_id for ack in acks], Right.QUEUE_CONSUME)
    return [ack if ack.partition_id in known else ack._replace(partition_id=0) for ack in acks]


async def may_touch_lease(broker: Broker, call: Call, lease_id: UUID) -> bool:
    """Whether the caller may consume the queue or stream of a lease."""
    if call.caller.scopes is None:
        return True
    row = await broker.store.database.row("queue_of_lease", {"lease_id": lease_id})
    if row is None:
        return False
    queue = str(row[0])
    if call.right is Right.QUEUE_CONSUME:
        return call.caller.may(Right.QUEUE_CONSUME, queue)
    stream = stream_of_queue(queue)
    return stream is not None and call.caller.may(Right.STREAM_CONSUME, stream_name(*stream))
