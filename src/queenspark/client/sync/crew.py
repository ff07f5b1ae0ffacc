# Made from aio/crew.py by `make format`: change that file, not this one.
"""The workers of a consumer: fetch, handle under a renewed lease, ack, repeat.

A single fetcher fetches deliveries for all workers and prefetches as many as they handle in a short time. A
delivery that waits too long for a worker is released, so that a slow handler starves no other consumer. Acks
are batched (`acks.py`), leases renewed in the background (`leases.py`).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from threading import Lock
from traceback import extract_tb
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..brokers import delay
from ..budget import Budget
from ..errors import PASSING, LeaseLost, QueenError
from ..events import Event, Kind, Listener
from .acks import Ack, Acks, Status, send_acks
from .leases import Keeper, Lease
from .tasks import Condition, Flag, Task, call, stopped_by_signals

#: Long-poll time of one fetch; bounds the delay of `stop`.
_WAIT_SECONDS = 1.0
#: How often the fetcher checks whether released deliveries made room within the limit.
_CHECK_SECONDS = 0.05
#: Prefetch this much work.
_AHEAD_SECONDS = 0.1
#: A delivery that waited this long for a worker is released.
_PATIENCE_SECONDS = 0.25
#: Approximate upper bound of prefetched messages.
_AHEAD_MESSAGES = 10_000
#: Between log lines about brokers that cannot be reached.
_LOG_SECONDS = 30.0
#: Weight of the last call in the moving average of handler times; a longer call replaces the average.
_WEIGHT = 0.2

_log = logging.getLogger("queenspark.client")
#: The crew that runs the current handler.
current: ContextVar[object] = ContextVar("current", default=None)


class Delivery(Protocol):
    """A unit of work: a window or a batch of messages."""

    lease: Lease

    @property
    def id(self) -> str:
        """The id of the delivery."""

    @property
    def redelivered(self) -> bool:
        """Whether part of it was released or nacked."""

    def acks(self, status: Status, reason: str | None = None) -> list[Ack]:
        """Return acks with this status for all of it that is not acked yet."""

    def __len__(self) -> int:
        """The number of messages."""


D = TypeVar("D", bound=Delivery)


class Wish(NamedTuple):
    """The size of a fetch: deliveries, units in total, and the long-poll time in seconds."""

    deliveries: int
    units: int
    wait: float


class Verdict(NamedTuple):
    """The result of handling a delivery: acks still to send, and the handler's exception."""

    acks: Sequence[Ack] = ()
    failure: Exception | None = None


Give = Callable[[Sequence[Ack]], None]
#: Deliveries of one partition, which one worker handles in order.
Run = list[D]
Runs = list[list[D]]


def attempt(handler: Callable[..., Any], *arguments: Any) -> tuple[Any, Exception | None]:
    """Call a handler; return its result or its exception."""
    try:
        return call(handler, *arguments), None
    except Exception as error:  # noqa: BLE001 - any exception of a handler is a failure
        return None, error


def reason_of(failure: Exception) -> str:
    """Return the nack reason for an exception; file names may not be valid UTF-8."""
    return f"{type(failure).__name__}: {failure}".encode(errors="backslashreplace").decode()


def _where(error: BaseException | None) -> str:
    """Return the source line that raised the error."""
    frames = extract_tb(error.__traceback__) if error is not None else None
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


class _Turn(Generic[D]):
    """A delivery being handled, or with acks in flight."""

    def __init__(self, delivery: D) -> None:
        self.delivery = delivery
        self.began = time.monotonic()
        self.failure: Exception | None = None
        self.error: Exception | None = None
        self._lock = Lock()
        self._open = 1  # the handler itself, plus groups of acks

    def more(self) -> None:
        """Add something to settle."""
        with self._lock:
            self._open += 1

    def settled(self, error: Exception | None) -> bool:
        """Settle one; return whether it was the last."""
        with self._lock:
            self.error = self.error or error
            self._open -= 1
            return not self._open


class Crew(Generic[D]):
    """Workers that share a budget.

    `take` fetches runs of deliveries. `do` handles one, may send some of its acks early, and returns a
    verdict. `size` is the number of units that count towards the limit, `each_take` the maximum units per
    delivery, and `most_ahead` the maximum number of prefetched deliveries.
    """

    def __init__(
        self,
        name: str,
        group: str | None,
        *,
        take: Callable[[Wish], Runs[D]],
        do: Callable[[D, Give], Verdict],
        size: Callable[[D], int],
        each_take: int,
        most_ahead: int,
        concurrency: int,
        limit: int | None,
        idle: float | None,
        listener: Listener | None,
    ) -> None:
        self._name = name
        self._group = group
        self._take = take
        self._do = do
        self._size = size
        self._each_take = each_take
        self._most_ahead = most_ahead
        self._concurrency = concurrency
        self._budget = Budget(limit, idle)
        self._listener = listener
        self._stop = Flag()
        self._failures = 0
        self._next_log = 0.0
        #: Errors that ended the background work.
        self._broken: list[BaseException] = []
        self._acks = Acks()
        self._keeper = Keeper(self._renewed)
        #: Guards the shelf and everything below.
        self._news = Condition()
        #: Runs waiting for a worker, with their arrival time.
        self._shelf: deque[tuple[Run[D], float]] = deque()
        self._busy = 0
        #: Runs that waited too long for a worker and are being released.
        self._releasing = 0
        self._fetcher_waits = False
        self._fetched_all = False
        #: Handled deliveries with acks in flight.
        self._acking = 0
        self._turns: set[_Turn[D]] = set()
        #: Moving averages of the seconds and messages per delivery; None before the first.
        self._pace: float | None = None
        self._messages = 0.0
        #: Set when everything has ended.
        self.ended = Flag()

    def stop(self) -> None:
        """Fetch nothing more and finish the deliveries in flight."""
        self._stop.set()

    def run(self) -> None:
        """Run until the budget is used up, `stop` is called, or SIGINT or SIGTERM arrives."""
        with stopped_by_signals(self.stop):
            background = (self._acks.run, self._keeper.run, self._give_back_unstarted)
            acks, *beside = [Task(partial(self._in_background, work)) for work in background]
            fetcher = Task(self._fetch_all)
            several = range(self._concurrency if self._concurrency > 1 else 0)
            workers = [Task(self._work) for _ in several]
            try:
                if not workers:  # run in the caller's own thread or task
                    self._work()
                errors = [worker.join() for worker in (*workers, fetcher)]
                self._acks.end()
                acks.join()
                errors += self._broken
            except BaseException:
                self.stop()
                tasks = [*beside, acks, fetcher, *workers]
                for task in tasks:
                    task.cancel()
                for task in tasks:
                    task.cancelled()
                raise
            finally:
                self._acks.end()
                self._keeper.end()
            for task in beside:
                task.cancel()
                task.cancelled()
            for error in errors:
                if error is not None:
                    raise error

    def _in_background(self, work: Callable[[], None]) -> None:
        """Run this; if it fails, stop: without acks or renewals, windows would be handled again and again."""
        try:
            work()
        except BaseException as error:
            self._broken.append(error)
            self.stop()
            self._acks.end()  # or a handler could wait for acks that are never sent
            raise

    # the fetcher

    def _fetch_all(self) -> None:
        try:
            while not self._stop.is_set():
                if not (wanted := self._room()):
                    self._wait_for_room(_WAIT_SECONDS)
                    continue
                claimed = self._budget.claim(wanted * self._each_take)
                if claimed is None:
                    break
                if claimed:
                    self._fetch(wanted, claimed)
                elif self._shelf or self._busy or self._releasing:
                    # Released deliveries may make room within the limit.
                    self._wait_for_room(_CHECK_SECONDS)
                else:
                    break
        except BaseException:
            self.stop()
            raise
        finally:
            with self._news:
                self._fetched_all = True
                self._news.notify()

    def _wait_for_room(self, seconds: float) -> None:
        with self._news:
            self._fetcher_waits = True
            self._news.wait(seconds)
            self._fetcher_waits = False

    def _room(self) -> int:
        """Return how many deliveries to fetch: one per idle worker, plus the prefetch."""
        ahead = 0
        if self._pace is not None:
            ahead = int(self._concurrency * _AHEAD_SECONDS / max(self._pace, 1e-6))
            ahead = min(ahead, self._most_ahead, int(_AHEAD_MESSAGES / max(self._messages, 1.0)))
        waiting = sum(len(run) for run, _ in self._shelf)
        free = self._concurrency - self._busy - len(self._shelf)
        if self._acking > 2 * max(self._most_ahead, self._concurrency):  # acks are not getting through
            return 0
        return max(free, ahead - waiting if waiting <= ahead // 2 else 0, 0)

    def _fetch(self, wanted: int, claimed: int) -> None:
        sizes: list[int] | None = None
        try:
            runs = self._take(Wish(wanted, claimed, self._budget.wait(_WAIT_SECONDS)))
            sizes = [self._size(delivery) for run in runs for delivery in run]
        except PASSING as error:
            self._failures += 1
            self._tell("unreachable", error=error)
            self._stop.wait(delay(self._failures))
            return
        finally:
            self._budget.settle(claimed, sizes)
        self._failures = 0
        for run in runs:
            for delivery in run:
                self._keeper.hold(delivery.lease)
        now = time.monotonic()
        with self._news:
            self._shelf.extend((run, now) for run in runs)
            self._news.notify()

    # the shelf: runs waiting for a worker

    def _next(self) -> Run[D] | None:
        """Return the next run for a worker, or None when there will be none."""
        while True:
            unwanted: list[Run[D]] = []
            with self._news:
                if self._stop.is_set():
                    unwanted = [run for run, _ in self._shelf]
                    self._shelf.clear()
                elif self._shelf:
                    run, _ = self._shelf.popleft()
                    self._busy += 1
                    self._wake_fetcher()
                    return run
                if self._fetched_all and not unwanted:
                    return None
                if not unwanted:
                    self._wake_fetcher()
                    self._news.wait()
            for run in unwanted:
                self._give_back(run)

    def _wake_fetcher(self) -> None:
        if self._fetcher_waits and self._room():
            self._news.notify()

    def _give_back_unstarted(self) -> None:
        """Release deliveries that waited too long for a worker."""
        while True:
            with self._news:
                now = time.monotonic()
                late: list[Run[D]] = []
                while self._shelf and self._shelf[0][1] + _PATIENCE_SECONDS <= now:
                    late.append(self._shelf.popleft()[0])
                if late:
                    self._releasing = len(late)
                    self._pace = max(self._pace or 0.0, _PATIENCE_SECONDS)
                elif self._fetched_all and not self._shelf:
                    return
                else:
                    due = self._shelf[0][1] + _PATIENCE_SECONDS - now if self._shelf else None
                    self._news.wait(due)
            for run in late:
                self._give_back(run)
            with self._news:
                self._releasing = 0

    def _give_back(self, run: Run[D]) -> None:
        """Release deliveries for immediate redelivery to any consumer; not counted as a failure."""
        if not run:
            return
        with suppress(QueenError):  # redelivered when the lease expires
            send_acks([each for delivery in run for each in delivery.acks("retry")])
        self._forget(run)

    def _forget(self, run: Run[D]) -> None:
        """Drop the leases of released deliveries and return them to the budget."""
        for delivery in run:
            self._budget.returned(self._size(delivery))
            self._keeper.drop(delivery.lease)

    # the workers

    def _work(self) -> None:
        token = current.set(self)
        try:
            while (run := self._next()) is not None:
                try:
                    self._handle_run(run)
                finally:
                    with self._news:
                        self._busy -= 1
        except BaseException:
            self.stop()
            raise
        finally:
            current.reset(token)

    def _handle_run(self, run: Run[D]) -> None:
        """Handle deliveries of one partition in order; a failure also releases all later ones."""
        for number, delivery in enumerate(run):
            if delivery.lease.is_over or (number and self._stop.is_set()):
                self._give_back(run[number:])
                return
            if self._handle(delivery, run, number + 1):
                return

    def _handle(self, delivery: D, run: Run[D], following: int) -> bool:
        """Handle a delivery and send its acks; return whether it is redelivered.

        Redelivery of one includes the rest of its run.
        """
        turn = _Turn(delivery)
        self._turns.add(turn)
        self._tell_of(turn, "delivered")

        def give(acks: Sequence[Ack]) -> None:
            if acks:
                turn.more()
                self._acks.give(acks, settled)

        def settled(error: Exception | None) -> None:
            if turn.settled(error):
                self._finish(turn)

        redelivered = False
        error: QueenError | None = None
        try:
            verdict = self._do(delivery, give)
            turn.failure = verdict.failure
            redelivered = verdict.failure is not None or delivery.redelivered
            # One request, so that no other consumer can get later deliveries before this failure counts.
            behind = run[following:] if redelivered else []
            give([*(each for later in behind for each in later.acks("retry")), *verdict.acks])
        except QueenError as raised:
            error = raised
            redelivered = True
            behind = run[following:]
        self._note_pace(time.monotonic() - turn.began, len(delivery))
        with self._news:
            self._acking += 1
        if error is None:
            self._forget(behind)
        else:
            self._give_back(behind)
        settled(error)
        return redelivered

    def _note_pace(self, seconds: float, messages: int) -> None:
        if self._pace is None or seconds > self._pace:
            self._pace = seconds
        else:
            self._pace += _WEIGHT * (seconds - self._pace)
        self._messages += _WEIGHT * (messages - self._messages)

    def _finish(self, turn: _Turn[D]) -> None:
        self._turns.discard(turn)
        self._keeper.drop(turn.delivery.lease)
        if turn.error is not None:
            self._tell_of(turn, "lost" if isinstance(turn.error, LeaseLost) else "unacked", turn.error)
        else:
            self._tell_of(turn, "done" if turn.failure is None else "failed", turn.failure)
        self._budget.handled()
        with self._news:
            self._acking -= 1
            self._wake_fetcher()

    # events

    def _renewed(self, lease: Lease, error: Exception | None) -> None:
        for turn in list(self._turns):
            if turn.delivery.lease is lease:
                self._tell_of(turn, "renewed" if error is None else "unreachable", error)

    def _tell_of(self, turn: _Turn[D], kind: Kind, error: BaseException | None = None) -> None:
        seconds = time.monotonic() - turn.began
        self._tell(kind, turn.delivery.id, len(turn.delivery), seconds, error)

    def _tell(
        self,
        kind: Kind,
        id_: str = "",
        messages: int = 0,
        seconds: float = 0.0,
        error: BaseException | None = None,
    ) -> None:
        if self._listener is None:
            if kind in ("failed", "lost", "unacked"):
                _log.warning("%s: %s %s: %s%s", self._name, id_, kind, error, _where(error))
                _log.debug("traceback", exc_info=error)
            elif kind == "unreachable" and time.monotonic() >= self._next_log:
                self._next_log = time.monotonic() + _LOG_SECONDS
                _log.warning("%s: %s (retrying)", self._name, error)
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
            except Exception:  # noqa: BLE001 - a failing listener must not stop the work
                _log.exception("an on_event listener failed at %s", event)
