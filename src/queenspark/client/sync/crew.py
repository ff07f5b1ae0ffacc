# Made from aio/crew.py by `make format`: change that file, not this one.
"""The workers of a consumer: take, handle under a lease that is kept alive, answer, again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from traceback import extract_tb
from typing import Any, Generic, Protocol, TypeVar

from ..brokers import delay
from ..budget import Budget
from ..errors import PASSING, LeaseLost, QueenError, QueueFull
from ..events import Event, Kind, Listener
from .leases import Lease, kept
from .tasks import Flag, Task, call, sleep, stopped_by_signals

#: How long one request waits for something to take: a consumer that is told to stop waits no longer.
_WAIT_SECONDS = 1.0
#: How often a worker looks whether others have left it something of the limit.
_LOOK_SECONDS = 0.05

_log = logging.getLogger("queenspark.client")
#: The crew whose handler this is called by.
current: ContextVar[object] = ContextVar("current", default=None)


class Delivery(Protocol):
    """What a consumer takes: a window, or a batch of messages."""

    lease: Lease

    @property
    def id(self) -> str:
        """What tells it apart."""

    def __len__(self) -> int:
        """How many messages it has."""

    def release(self) -> None:
        """Let it come again at once, to anybody."""


D = TypeVar("D", bound=Delivery)
Take = Callable[[int, float], D | None]


def attempt(handler: Callable[..., Any], *arguments: Any) -> tuple[Any, Exception | None]:
    """What a handler returns, or what it raised."""
    try:
        return call(handler, *arguments), None
    except Exception as error:  # noqa: BLE001 - whatever a handler raises means: not done
        return None, error


def reason_of(failure: Exception) -> str:
    """What a nack says about an exception; file names may have what is no Unicode."""
    return f"{type(failure).__name__}: {failure}".encode(errors="backslashreplace").decode()


def _where(error: BaseException | None) -> str:
    """The line that raised it."""
    frames = extract_tb(error.__traceback__) if error is not None else None
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def answer_under(lease: Lease, send: Callable[[], None]) -> None:
    """Answer until a broker takes it, or until the time of a lease has passed.

    Handling and answering are separate steps: an answer that does not get through never becomes another
    answer. For room in a full queue it waits for as long as the lease is renewed.
    """
    failures = 0
    until = time.monotonic() + lease.timeout
    while True:
        try:
            send()
        except PASSING as error:
            failures += 1
            pause = delay(failures)
            ends = lease.ends if isinstance(error, QueueFull) else min(lease.ends, until)
            if time.monotonic() + pause >= ends:
                raise
            sleep(pause)
        else:
            return


class Crew(Generic[D]):
    """Workers that share a budget.

    `take(most, seconds)` waits for a delivery; `do` handles and answers it, and returns what the handler
    raised.
    """

    def __init__(
        self,
        name: str,
        group: str | None,
        *,
        take: Take[D],
        do: Callable[[D], Exception | None],
        each_take: int,
        concurrency: int,
        limit: int | None,
        idle: float | None,
        listener: Listener | None,
    ) -> None:
        self._name = name
        self._group = group
        self._take = take
        self._do = do
        self._each_take = each_take
        self._concurrency = concurrency
        self._budget = Budget(limit, idle)
        self._listener = listener
        self._stop = Flag()
        self._failures = 0
        #: Raised when all of it is over.
        self.ended = Flag()

    def stop(self) -> None:
        """Take nothing more; what is in hand is finished."""
        self._stop.set()

    def run(self) -> None:
        """Work until the budget is used up, `stop` is called, or SIGINT or SIGTERM comes."""
        with stopped_by_signals(self.stop):
            if self._concurrency == 1:  # in the caller's own thread or task
                self._work()
            else:
                self._work_together()

    def _work_together(self) -> None:
        error: BaseException | None = None
        workers = [Task(self._work) for _ in range(self._concurrency)]
        try:
            for worker in workers:
                failure = worker.join()
                error = failure if error is None else error
        except BaseException:
            self.stop()
            for worker in workers:
                worker.cancel()
            for worker in workers:
                worker.cancelled()
            raise
        if error is not None:
            raise error

    def _work(self) -> None:
        token = current.set(self)
        try:
            while not self._stop.is_set() and (claimed := self._budget.claim(self._each_take)) is not None:
                if claimed:
                    self._take_one(claimed)
                else:
                    self._stop.wait(_LOOK_SECONDS)
        except BaseException:
            self.stop()
            raise
        finally:
            current.reset(token)

    def _take_one(self, claimed: int) -> None:
        taken: int | None = None
        try:
            delivery = self._take(claimed, self._budget.wait(_WAIT_SECONDS))
            taken = 0 if delivery is None else max(1, min(len(delivery), claimed))  # a window counts as one
        except PASSING as error:
            self._failures += 1
            self._tell("unreachable", error=error)
            self._stop.wait(delay(self._failures))
            return
        finally:
            self._budget.settle(claimed, taken)
        self._failures = 0
        if delivery is not None:
            try:
                if self._stop.is_set():  # it came while this worker was told to stop
                    with suppress(QueenError):
                        delivery.release()
                else:
                    self._in_hand(delivery)
            finally:
                self._budget.handled()

    def _in_hand(self, delivery: D) -> None:
        began = time.monotonic()

        def tell(kind: Kind, error: BaseException | None = None) -> None:
            self._tell(kind, delivery.id, len(delivery), time.monotonic() - began, error)

        def renewed(error: QueenError | None) -> None:
            tell("renewed" if error is None else "unreachable", error)

        tell("delivered")
        try:
            with kept(delivery.lease, renewed):
                failure = self._do(delivery)
        except LeaseLost as lost:
            tell("lost", lost)
        except QueenError as error:
            tell("unanswered", error)
        else:
            tell("done" if failure is None else "failed", failure)

    def _tell(
        self,
        kind: Kind,
        id_: str = "",
        messages: int = 0,
        seconds: float = 0.0,
        error: BaseException | None = None,
    ) -> None:
        if self._listener is None:
            if kind in ("failed", "lost", "unanswered"):
                _log.warning("%s: %s was %s: %s%s", self._name, id_, kind, error, _where(error))
                _log.debug("where that came from", exc_info=error)
        else:
            event = Event(
                kind=kind,
                name=self._name,
                group=self._group,
                id=id_,
                messages=messages,
                seconds=seconds,
                error=error,
            )
            try:
                self._listener(event)
            except Exception:  # noqa: BLE001 - who counts must not harm the work
                _log.exception("an on_event listener failed at %s", event)
