# Made from aio/consumer.py by `make format`: change that file, not this one.
"""A consumer of a stream: polls windows, handles them, acks them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any

from ..budget import at_least_one
from ..duration import Duration, seconds
from ..errors import PASSING, InDoubt, InvalidValue, LeaseLost, Refused, TransactionRefused
from ..events import Listener
from ..times import as_time
from ..wire import PIPELINE_HEADER, Polled, PolledWindows
from .acks import retry_under
from .crew import Crew, Give, Verdict, Wish, attempt, reason_of
from .session import Session
from .tasks import checked
from .transaction import Transaction
from .window import Window

_MOST_AHEAD = 100  # windows per poll
_WARNING_SECONDS = 30.0  # between warnings that no pipeline is leading
_log = logging.getLogger("queenspark.client")


class Consumer:
    """A member of a consumer group of a stream. Each window goes to one member, again if it fails."""

    def __init__(
        self, session: Session, stream: str, group: str, namespace: str | None, on_event: Listener | None
    ) -> None:
        self._session = session
        self._stream = stream
        self._group = group
        self._namespace = namespace
        self._on_event = on_event
        self._crews: list[Crew[Window]] = []
        self._next_warning = 0.0

    def poll(
        self, *, wait: Duration = 30, max_messages: int | None = None, messages: bool = True
    ) -> Window | None:
        """Lease the next window; return None if none became available within `wait`.

        With `max_messages` a large window comes in pages: iterate over `window.pages()`. With
        `messages=False` it comes without its messages, which is cheaper; `window.pages()` still reads them.
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
        renewed every third of its time while the handler runs. SIGINT and SIGTERM stop it after the windows
        in flight.

        With `into`, the handler's return value (a payload, a list, or None for nothing) is pushed to that
        queue in one transaction with the ack: exactly once. The partition is the window's key (`Default` for
        a global stream) unless an `Outgoing` has its own. A result that cannot be stored counts as a failure
        of the handler.

        With `messages=False` windows come without their messages, as with `poll`.
        """

        def do(window: Window, give: Give) -> Verdict:
            result, failure = attempt(handler, window)
            if window.acked:
                return Verdict(failure=failure)
            if failure is None and into is not None and result is not None:
                failure = self._hand_over(window, into, result)
            elif failure is None and auto_ack:
                return Verdict(window.acks("completed"))
            if failure is None:
                return Verdict()
            if window.in_doubt:  # never nack after an ack that may have arrived
                raise InDoubt(f"unknown whether the ack took effect: {failure}") from failure
            return Verdict(window.acks("failed", reason_of(failure)), failure)

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
        """Seek the group to a time: it gets all windows that end later, again if already consumed."""
        body = {
            "streamName": self._stream,
            "namespace": self._namespace,
            "consumerGroup": self._group,
            "timestamp": as_time("time", time),
        }
        self._session.call("POST", "stream", "seek", body=body)

    def stop(self) -> None:
        """Stop `process` after the windows in flight. May be called from a handler."""
        for crew in list(self._crews):
            crew.stop()

    def _hand_over(self, window: Window, queue: str, result: Any) -> Exception | None:
        """Ack the window and push the result; return the error if the result cannot be pushed."""
        transaction = Transaction(self._session.transport).ack(window).queue(queue)
        try:
            transaction.partition(window.partition).push(result)
            retry_under(window.lease, transaction.commit)
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
            "POST",
            "stream",
            "poll",
            body=body,
            patience=wait,
            kind=Polled,
            on_nothing=self._check_pipeline,
        )
        if polled is None:
            return None
        return Window(self._session.transport, polled.window)

    def _take(self, wish: Wish, *, messages: bool) -> list[list[Window]]:
        """Lease several windows of different keys; each is a run of its own."""
        body = {**self._request(wish.wait), "maxWindows": min(wish.units, _MOST_AHEAD), "messages": messages}
        polled: PolledWindows | None = self._session.call(
            "POST",
            "stream",
            "poll",
            body=body,
            patience=wish.wait,
            kind=PolledWindows,
            on_nothing=self._check_pipeline,
        )
        if polled is None:
            return []
        return [[Window(self._session.transport, window)] for window in polled.windows]

    def _check_pipeline(self, headers: Mapping[str, str]) -> None:
        """Log a warning when no pipeline is leading: no window will arrive until one is."""
        if headers.get(PIPELINE_HEADER) != "none" or monotonic() < self._next_warning:
            return
        self._next_warning = monotonic() + _WARNING_SECONDS
        _log.warning(
            "%s: waiting for windows, but no pipeline is leading: start one with `queenspark pipeline`",
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
