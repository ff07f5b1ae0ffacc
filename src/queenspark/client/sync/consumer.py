# Made from aio/consumer.py by `make format`: change that file, not this one.
"""A consumer of a stream: takes windows, handles them, answers them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any

from ..budget import at_least_one
from ..duration import Duration, seconds
from ..errors import PASSING, InDoubt, InvalidValue, LeaseLost, QueenError, Refused, TransactionRefused
from ..events import Listener
from ..times import as_time
from ..wire import Polled, PolledWindows
from .answers import answer_under
from .crew import Crew, Give, Verdict, Wish, attempt, reason_of
from .session import Session
from .tasks import checked
from .transaction import Transaction
from .window import Window

_MOST_AHEAD = 100  # windows of one poll
_CHECK_SECONDS = 30.0  # between checks whether a pipeline is leading, while no window comes
_log = logging.getLogger("queenspark.client")


class Consumer:
    """One member of a consumer group of a stream. Each window goes to one member, again if it fails."""

    def __init__(
        self, session: Session, stream: str, group: str, namespace: str | None, on_event: Listener | None
    ) -> None:
        self._session = session
        self._stream = stream
        self._group = group
        self._namespace = namespace
        self._on_event = on_event
        self._crews: list[Crew[Window]] = []
        self._next_check = 0.0

    def poll(
        self, *, wait: Duration = 30, max_messages: int | None = None, messages: bool = True
    ) -> Window | None:
        """Take the next window under a lease; None when none came within `wait`.

        With `max_messages` a large window comes in pages: go through `window.pages()`. With `messages=False`
        it comes without its messages, which costs less; `window.pages()` still reads them.
        """
        if not messages and max_messages is not None:
            raise InvalidValue(f"max_messages is {max_messages} and messages is False: pass only one of them")
        return self._poll(seconds("wait", wait), max_messages, messages=messages)

    def process(
        self,
        handler: Callable[[Window], object],
        *,
        concurrency: int = 1,
        limit: int | None = None,
        idle: Duration | None = None,
        auto_ack: bool = True,
        into: str | None = None,
        messages: bool = True,
    ) -> None:
        """Call `handler` with each window, until `limit` windows, `idle` time, `stop()` or Ctrl-C.

        A window is acked when the handler returns, and nacked with the reason when it raises. Its lease is
        renewed at a third of its time while the handler works. SIGINT and SIGTERM end it after the windows in
        hand.

        With `into`, what the handler returns (a payload, a list, or None for nothing) is pushed to that queue
        in one transaction with the ack: exactly once. The partition is the window's key, unless an `Outgoing`
        has its own; of a global stream it is `Default`. A result that cannot be stored is a failure of the
        handler.

        With `messages=False` windows come without their messages, as with `poll`.
        """

        def do(window: Window, give: Give) -> Verdict:
            result, failure = attempt(handler, window)
            if window.answered:
                return Verdict(failure=failure)
            if failure is None and into is not None and result is not None:
                failure = self._hand_over(window, into, result)
            elif failure is None and auto_ack:
                return Verdict(window.answers("completed"))
            if failure is None:
                return Verdict()
            if window.in_doubt:  # an ack that may have arrived is never followed by a nack
                raise InDoubt(f"unknown whether the ack took effect: {failure}") from failure
            return Verdict(window.answers("failed", reason_of(failure)), failure)

        checked(handler)
        crew: Crew[Window] = Crew(
            self._stream,
            self._group,
            take=partial(self._take, messages=messages),
            do=do,
            size=lambda window: 1,
            each_take=1,
            most_ahead=_MOST_AHEAD,
            concurrency=at_least_one("concurrency", concurrency),
            limit=None if limit is None else at_least_one("limit", limit),
            idle=None if idle is None else seconds("idle", idle),
            listener=self._on_event,
        )
        self._crews.append(crew)
        try:
            self._session.run(crew)
        finally:
            self._crews.remove(crew)

    def seek(self, time: datetime | str) -> None:
        """Move the group: it gets the windows that end after this time, again or for the first time."""
        body = {
            "streamName": self._stream,
            "namespace": self._namespace,
            "consumerGroup": self._group,
            "timestamp": as_time("time", time),
        }
        self._session.call("POST", "stream", "seek", body=body)

    def stop(self) -> None:
        """End `process` after the windows in hand. May be called in a handler."""
        for crew in list(self._crews):
            crew.stop()

    def _hand_over(self, window: Window, queue: str, result: Any) -> Exception | None:
        """Ack the window and push the result; what is wrong with the result, if it cannot be pushed."""
        transaction = Transaction(self._session.transport).ack(window).queue(queue)
        try:
            transaction.partition(window.partition).push(result)
            answer_under(window.lease, transaction.commit)
        except TransactionRefused as refused:
            raise LeaseLost(str(refused)) from None
        except PASSING:
            raise
        except (InvalidValue, Refused) as error:
            return error
        return None

    def _poll(self, wait: float, max_messages: int | None = None, *, messages: bool = True) -> Window | None:
        body = {**self._request(wait), "maxMessages": max_messages, "messages": messages}
        polled: Polled | None = self._session.call(
            "POST", "stream", "poll", body=body, patience=wait, kind=Polled
        )
        return None if polled is None else Window(self._session.transport, polled.window)

    def _take(self, wish: Wish, *, messages: bool) -> list[list[Window]]:
        """Several windows of different keys, each of which any worker may handle."""
        body = {**self._request(wish.wait), "maxWindows": min(wish.units, _MOST_AHEAD), "messages": messages}
        polled: PolledWindows | None = self._session.call(
            "POST", "stream", "poll", body=body, patience=wish.wait, kind=PolledWindows
        )
        if polled is None:
            self._check_pipeline()
            return []
        return [[Window(self._session.transport, window)] for window in polled.windows]

    def _check_pipeline(self) -> None:
        """Log when windows cannot come because no pipeline is leading; a consumer waits for one then."""
        if monotonic() < self._next_check:
            return
        self._next_check = monotonic() + _CHECK_SECONDS
        with suppress(QueenError):  # whoever may consume need not be allowed to ask
            stats = self._session.call("GET", "resources", "streams", "stats", retries=0)
            if not stats["pipeline"]["active"]:
                _log.warning(
                    "%s: no window can come, because no pipeline is leading: start one with"
                    " `queenspark pipeline`",
                    self._stream,
                )

    def _request(self, wait: float) -> dict[str, Any]:
        return {
            "streamName": self._stream,
            "consumerGroup": self._group,
            "consumerId": self._session.consumer_id,
            "namespace": self._namespace,
            "timeout": round(wait * 1000),
        }
