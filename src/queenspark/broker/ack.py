"""POST /api/v1/ack, /api/v1/ack/batch and /api/v1/transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal
from uuid import UUID, uuid4

import msgspec
from msgspec.structs import astuple

from ..store.delivery import QUEUE_MODE, Ack, Acked
from ..store.errors import StoreError, TransactionRefused
from ..store.push import Item
from ..store.transaction import REASONS
from .broker import Broker
from .errors import bad_request
from .http import Call, Response, Right, Route, json
from .push import MESSAGES as PUSH_MESSAGES
from .push import PushedItem, admit_items, check_items, pushed_items
from .reach import reachable_acks

log = logging.getLogger("queenspark.broker")

Status = Literal["completed", "failed", "retry", "dlq"]

MESSAGES = {
    "transactionId": "transactionId is required",
    "partitionId": "partitionId is required to ensure message uniqueness",
    "acknowledgments": "acknowledgments array is required",
    "status": "status must be completed, failed, retry or dlq",
}


class AckRequest(msgspec.Struct, rename="camel"):
    """An ack or nack of one message."""

    transaction_id: str
    partition_id: str | int
    status: Status | None = None
    error: str | None = None
    consumer_group: str | None = None
    lease_id: str | None = None


class AckBatchRequest(msgspec.Struct, rename="camel"):
    """Acks of several messages."""

    acknowledgments: list[AckRequest]
    consumer_group: str | None = None


class AckResult(msgspec.Struct, rename="camel"):
    """The result of an ack."""

    success: bool
    transaction_id: str
    status: str
    consumer_group: str | None
    lease_released: bool
    dlq: bool


class AckResponse(AckResult):
    """The result of an ack, with the reason for a rejection."""

    error: str | msgspec.UnsetType = msgspec.UNSET


class PushStep(PushedItem, tag_field="type", tag="push"):
    """The result of one item of a push in a transaction."""


class AckStep(AckResult, tag_field="type", tag="ack"):
    """The result of an ack in a transaction."""


class Transacted(msgspec.Struct, rename="camel"):
    """The result of a transaction; a rejected one had no effect and carries the reason."""

    transaction_id: str
    success: bool
    results: list[PushStep | AckStep]
    error: str | msgspec.UnsetType = msgspec.UNSET
    code: str | msgspec.UnsetType = msgspec.UNSET


class Operation(msgspec.Struct, rename="camel"):
    """One operation of a transaction: a push of items, or an ack."""

    type: Literal["push", "ack"]
    items: list[Item] | None = None
    transaction_id: str | None = None
    partition_id: str | int | None = None
    status: Status | None = None
    error: str | None = None
    consumer_group: str | None = None
    lease_id: str | None = None


#: Fields that only operations of the other type have.
_FOREIGN: dict[str, tuple[str, ...]] = {
    "push": ("transaction_id", "partition_id", "status", "error", "consumer_group", "lease_id"),
    "ack": ("items",),
}


class TransactionRequest(msgspec.Struct, rename="camel"):
    """Operations that are applied atomically."""

    operations: list[Operation]
    required_leases: list[str] | None = None


def to_ack(request: AckRequest | Operation, group: str | None = None) -> Ack:
    """Convert to the store's form of an ack; raise 400 if a field is missing."""
    if not request.transaction_id:
        raise bad_request(MESSAGES["transactionId"])
    if request.partition_id is None or request.partition_id == "":
        raise bad_request(MESSAGES["partitionId"])
    return Ack(
        _number(request.partition_id),
        request.transaction_id.replace("\x00", ""),
        request.consumer_group or group or QUEUE_MODE,
        _lease(request.lease_id),
        request.status or "completed",
        request.error.replace("\x00", "") if request.error is not None else None,
    )


_NO_LEASE = UUID(int=0)  # matches no lease


def _lease(text: str | None) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        return _NO_LEASE


def _number(partition_id: str | int) -> int:
    text = str(partition_id) if isinstance(partition_id, int) and partition_id < 2**63 else partition_id
    if not isinstance(text, str) or len(text) > 19 or not (text.isascii() and text.isdigit()):
        return 0
    return int(text) if int(text) < 2**63 else 0


def _result(ack: Ack, result: Acked, group: str | None) -> AckResponse:
    return AckResponse(
        result.accepted,
        ack.transaction_id,
        ack.status,
        group,
        result.released,
        result.outcome == "dead",
        msgspec.UNSET if result.accepted else REASONS[result.outcome],
    )


async def settle(broker: Broker, acks: Sequence[Ack], results: Sequence[Acked]) -> None:
    """Count acks, and wake polls that wait for released messages."""
    more: set[int] = set()
    outcomes: dict[str, int] = {}
    for ack, result in zip(acks, results, strict=True):
        outcomes[result.outcome] = outcomes.get(result.outcome, 0) + 1
        if result.more or result.outcome == "dead":
            more.add(ack.partition_id)
    for outcome, count in outcomes.items():
        broker.metrics.acks.labels(outcome).inc(count)
    broker.activity.acked(acks, results)
    broker.leases.forget(ack.lease_id for ack in acks)
    if not more:
        return
    try:
        for _, name in (await broker.store.catalog.names_of(more)).values():
            broker.bus.wake(name)
            queue = await broker.store.catalog.queue(name)
            if queue is not None and queue.dead_letter_queue is not None:
                broker.bus.wake(queue.dead_letter_queue)
    except StoreError as error:
        # The acks are stored; waiting polls notice a little later.
        log.warning("cannot wake waiting polls: %s", error)


async def ack(broker: Broker, call: Call) -> Response:
    """Ack one message."""
    request: AckRequest = call.body
    (wanted,) = await reachable_acks(broker, call, [to_ack(request)])
    results = await broker.acks.run([wanted])
    await settle(broker, [wanted], results)
    return json(_result(wanted, results[0], request.consumer_group))


async def ack_batch(broker: Broker, call: Call) -> Response:
    """Ack several messages, each independently."""
    request: AckBatchRequest = call.body
    if len(request.acknowledgments) > broker.settings.max_batch:
        raise bad_request(
            f"acknowledgments has {len(request.acknowledgments)} entries; the limit is"
            f" {broker.settings.max_batch}: send several batches"
        )
    acks = [to_ack(item, request.consumer_group) for item in request.acknowledgments]
    acks = await reachable_acks(broker, call, acks)
    if not acks:
        return json([])
    results = await broker.acks.run(acks)
    await settle(broker, acks, results)
    return json(
        [
            _result(wanted, result, item.consumer_group or request.consumer_group)
            for wanted, result, item in zip(acks, results, request.acknowledgments, strict=True)
        ]
    )


def _check_fields(number: int, operation: Operation) -> None:
    """Raise 400 for a push without items, and for fields of the other type."""
    if operation.type == "push" and operation.items is None:
        raise bad_request(PUSH_MESSAGES["items"])
    for field in _FOREIGN[operation.type]:
        if getattr(operation, field) is not None:
            name = {each.name: each.encode_name for each in msgspec.structs.fields(Operation)}[field]
            raise bad_request(
                f"operations[{number}].{name} does not belong to an operation of type {operation.type}: "
                "remove it, or send it in an operation of its own"
            )


async def transaction(broker: Broker, call: Call) -> Response:
    """Apply pushes and acks atomically."""
    request: TransactionRequest = call.body
    if not request.operations:
        raise bad_request("operations array cannot be empty")
    for number, operation in enumerate(request.operations):
        _check_fields(number, operation)
    items = [item for operation in request.operations for item in operation.items or ()]
    acks = [to_ack(operation) for operation in request.operations if operation.type == "ack"]
    if len(acks) > broker.settings.max_batch:
        raise bad_request(f"operations has more than {broker.settings.max_batch} acks: split the transaction")
    check_items(broker, items, call.body_bytes)
    admit_items(call, items)
    acks = await reachable_acks(broker, call, acks)
    leases = [_lease(lease) or _NO_LEASE for lease in request.required_leases or [] if lease]
    name = str(uuid4())
    try:
        pushed, acked = await broker.appender.append_and_ack(items, acks, leases)
    except TransactionRefused as refusal:
        return json(Transacted(name, False, [], str(refusal), refusal.code))
    await settle(broker, acks, acked)
    broker.metrics.pushes.inc(sum(not result.duplicate for result in pushed))
    broker.metrics.duplicates.inc(sum(result.duplicate for result in pushed))
    broker.activity.pushed(items, pushed)
    results: list[PushStep | AckStep] = []
    push_results = iter(pushed_items(items, pushed))
    ack_results = iter(zip(acks, acked, strict=True))
    for operation in request.operations:
        if operation.type == "push":
            results += [PushStep(*astuple(next(push_results))) for _ in operation.items or ()]
        else:
            wanted, result = next(ack_results)
            # A committed transaction has no rejected acks, hence no errors.
            results.append(AckStep(*astuple(_result(wanted, result, operation.consumer_group))[:-1]))
    return json(Transacted(name, True, results))


ROUTES = [
    Route(
        "POST",
        "/api/v1/ack",
        ack,
        "Ack a message",
        Right.QUEUE_CONSUME,
        {200: AckResponse},
        body=AckRequest,
        messages=MESSAGES,
    ),
    Route(
        "POST",
        "/api/v1/ack/batch",
        ack_batch,
        "Ack several messages",
        Right.QUEUE_CONSUME,
        {200: list[AckResponse]},
        body=AckBatchRequest,
        messages=MESSAGES,
    ),
    Route(
        "POST",
        "/api/v1/transaction",
        transaction,
        "Push and ack atomically",
        Right.QUEUE_TRANSACT,
        {200: Transacted},
        body=TransactionRequest,
        messages={
            **PUSH_MESSAGES,
            **MESSAGES,
            "": "operations array required",
            "operations": "operations array required",
            "type": "type must be push or ack",
            "transactionId": "transactionId must be a string",
        },
    ),
]
