# Made from aio/transaction.py by `make format`: change that file, not this one.
"""Acks and pushes that happen together or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from ..brokers import delay
from ..errors import InvalidValue, TransactionRefused, Unavailable, Unreachable
from ..outgoing import Item, items
from ..wire import Transacted
from .message import LeasedMessage
from .tasks import sleep
from .transport import Transport
from .window import Window

#: Why a broker refuses an ack: it was answered before; its lease is over.
_HAPPENED, _STALE = "repeated", "stale"


class Transaction:
    """Steps that are gathered here and carried out by `commit`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._acked: list[LeasedMessage | Window] = []
        self._items: list[Item] = []
        self._queue: str | None = None
        self._partition: str | None = None

    def ack(self, what: LeasedMessage | Window | Iterable[LeasedMessage]) -> Self:
        """Acknowledge a message, several, or a window."""
        if isinstance(what, LeasedMessage | Window):
            self._acked.append(what)
        else:
            self._acked.extend(what)
        return self

    def queue(self, name: str) -> Self:
        """The queue that the next pushes go to."""
        self._queue, self._partition = name, None
        return self

    def partition(self, name: str) -> Self:
        """The partition that the next pushes go to."""
        self._partition = name
        return self

    def push(self, payloads: Any, *, transaction_id: str | None = None) -> Self:
        """Push one payload, or each of a list."""
        if self._queue is None:
            raise InvalidValue("push needs a queue: transaction().queue(name).push(…)")
        self._items += items(self._queue, self._partition, payloads, transaction_id)
        return self

    def commit(self) -> None:
        """Carry it all out, or raise TransactionRefused and nothing has happened.

        Sent again when an answer got lost: an ack counts once in transactions, so it cannot happen twice.
        """
        operations: list[dict[str, Any]] = [{"type": "ack", **each.as_ack()} for each in self._acked]
        if self._items:
            operations.append({"type": "push", "items": self._items})
        if not operations:
            raise InvalidValue("the transaction is empty: ack or push something")
        answer, sent_before = self._send({"operations": operations})
        if not answer.success and not (sent_before and answer.code == _HAPPENED):
            if sent_before and answer.code == _STALE:
                raise Unreachable(
                    f"whether the transaction happened is not known: {answer.error}", maybe_done=True
                )
            raise TransactionRefused(answer.error or "the transaction was refused")
        for each in self._acked:
            each.answered = True

    def _send(self, body: dict[str, Any]) -> tuple[Transacted, bool]:
        """The answer, and whether an earlier request without an answer may have been carried out."""
        sent_before, failures = False, 0
        while True:
            try:
                answer = self._transport.call(
                    "POST", "transaction", body=body, kind=Transacted, repeatable=False
                )
                return answer, sent_before
            except (Unreachable, Unavailable) as error:
                sent_before = sent_before or not isinstance(error, Unreachable) or error.maybe_done
                failures += 1
                if failures > self._transport.retries:
                    raise
                sleep(delay(failures))
