# Made from aio/transaction.py by `make format`: change that file, not this one.
"""Transactions: acks and pushes that are committed atomically."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from ..brokers import delay
from ..errors import PASSING, InDoubt, InvalidValue, TransactionRefused, may_have_happened
from ..outgoing import Item, items
from ..wire import Transacted
from .message import LeasedMessage
from .tasks import sleep
from .transport import Transport
from .window import Window

#: Reasons of the broker to reject an ack: already acked; lease expired.
_HAPPENED, _STALE = "repeated", "stale"


class Transaction:
    """Operations collected here and carried out atomically by `commit`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._acked: list[LeasedMessage | Window] = []
        self._items: list[Item] = []
        self._queue: str | None = None
        self._partition: str | None = None
        self._maybe_acked = False  # outside this transaction
        self._sent_before = False  # outcome unknown

    def ack(self, what: LeasedMessage | Window | Iterable[LeasedMessage]) -> Self:
        """Ack a message, several messages, or a window."""
        added = [what] if isinstance(what, LeasedMessage | Window) else list(what)
        self._maybe_acked = self._maybe_acked or any(each.in_doubt for each in added)
        self._acked += added
        return self

    def queue(self, name: str) -> Self:
        """Set the queue for the next pushes."""
        self._queue, self._partition = name, None
        return self

    def partition(self, name: str) -> Self:
        """Set the partition for the next pushes."""
        self._partition = name
        return self

    def push(
        self,
        payloads: Any,
        *,
        transaction_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """Push one payload, or each of a list; every message gets the headers."""
        if self._queue is None:
            raise InvalidValue("push requires a queue: transaction().queue(name).push(…)")
        self._items += items(self._queue, self._partition, payloads, transaction_id, headers)
        return self

    def commit(self) -> None:
        """Commit all operations, or raise TransactionRefused if none took effect.

        Retried when a response is lost, and may be called again after Unreachable: an ack takes effect once
        across transactions, so the transaction cannot happen twice.
        """
        operations: list[dict[str, Any]] = [{"type": "ack", **each.as_ack()} for each in self._acked]
        if self._items:
            operations.append({"type": "push", "items": self._items})
        if not operations:
            raise InvalidValue("the transaction is empty: ack or push something")
        if any(each.acked for each in self._acked):
            raise TransactionRefused(
                "a message in the transaction was already acked; nothing was sent", _HAPPENED
            )
        response = self._send({"operations": operations})
        if not response.success:
            code, sent_before = response.code or "", self._sent_before
            if sent_before and (code == _STALE or (code == _HAPPENED and self._maybe_acked)):
                raise InDoubt(f"the outcome of the transaction is unknown: {response.error}")
            if not (sent_before and code == _HAPPENED):
                raise TransactionRefused(response.error or "the transaction was rejected", code)
        for each in self._acked:
            each.acked = True

    def _send(self, body: dict[str, Any]) -> Transacted:
        failures = 0
        while True:
            try:
                response: Transacted = self._transport.call(
                    "POST", "transaction", body=body, kind=Transacted, repeatable=False, retries=0
                )
                return response
            except PASSING as error:
                if may_have_happened(error):
                    self._sent_before = True
                failures += 1
                if failures > self._transport.retries:
                    for each in self._acked:
                        each.in_doubt = each.in_doubt or self._sent_before
                    raise
                sleep(delay(failures))
