# Made from aio/answers.py by `make format`: change that file, not this one.
"""Acks and nacks: sent together, and tried until a broker takes them or their lease is over."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from ..brokers import delay
from ..errors import PASSING, LeaseLost, QueenError, QueueFull, may_have_happened
from ..wire import Acked
from .leases import Lease
from .tasks import Condition, sleep

Status = Literal["completed", "failed", "retry", "dlq"]
_MOST = 10_000  # of one request


class Answerable(Protocol):
    """A message or a window that was taken under a lease."""

    lease: Any  # Lease
    answered: bool
    in_doubt: bool
    status: Status | None

    def as_ack(self, status: Status = "completed", reason: str | None = None) -> dict[str, Any]:
        """The answer to it, as the broker wants it."""


class Answer(NamedTuple):
    """What a consumer says about a message or window."""

    to: Answerable
    status: Status
    reason: str | None = None


def answer(answers: Sequence[Answer]) -> None:
    """Send answers; LeaseLost when the broker refuses one. Repeating an answer changes nothing.

    What was gathered under the same lease goes first: to give a message back ends the lease of those before.
    """
    for lease in {each.to.lease for each in answers}:
        if lease.gathering is not None:
            lease.gathering.settled_under(lease)
    lost = [error for error in _send(answers) if error is not None]
    if lost:
        raise _refused(lost, len(answers))


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
            if time.monotonic() + pause >= _end(lease, until, error):
                raise
            sleep(pause)
        else:
            return


class _Group(NamedTuple):
    """Answers that go out in one request, and who hears of the outcome."""

    answers: Sequence[Answer]
    settled: Callable[[QueenError | None], None]
    until: float

    def end(self, error: QueenError) -> float:
        """Until when they are tried again after this error."""
        return _end(self.answers[0].to.lease, self.until, error)


class Answers:
    """Gathers the answers of all workers. Those that come while a request is under way share the next one.

    Nobody waits for the outcome: `settled` is called with the error, or None, once it is known.
    """

    def __init__(self) -> None:
        self._news = Condition()
        self._waiting: list[_Group] = []
        #: How many groups of each lease are not settled.
        self._open: Counter[Lease] = Counter()
        self._over = False

    def give(self, answers: Sequence[Answer], settled: Callable[[QueenError | None], None]) -> None:
        """Send these soon, all of them in one request."""
        lease = answers[0].to.lease

        def noted(error: QueenError | None) -> None:
            with self._news:
                self._open[lease] -= 1
                if not self._open[lease]:
                    del self._open[lease]
                    self._news.notify()
            settled(error)

        lease.gathering = self
        with self._news:
            self._waiting.append(_Group(answers, noted, time.monotonic() + lease.timeout))
            self._open[lease] += 1
            if len(self._waiting) == 1:
                self._news.notify()

    def settled_under(self, lease: Lease) -> None:
        """Wait until all that was given under this lease is settled."""
        with self._news:
            while lease in self._open and not self._over:
                self._news.wait()

    def end(self) -> None:
        """Let `run` return after everything that was given is sent."""
        with self._news:
            self._over = True
            self._news.notify()

    def run(self) -> None:
        """Send what is given, until the end."""
        while True:
            with self._news:
                while not self._waiting and not self._over:
                    self._news.wait()
                groups, self._waiting = self._waiting, []
            if not groups:
                return
            _settle(groups)


def _settle(groups: list[_Group]) -> None:
    """Send groups of answers until each is taken, refused, or too late."""
    failures = 0
    while groups:
        try:
            said = _send([each for group in groups for each in group.answers])
        except PASSING as error:
            failures += 1
            pause = delay(failures)
            now = time.monotonic()
            for group in groups:
                if now + pause >= group.end(error):
                    group.settled(error)
            groups = [group for group in groups if now + pause < group.end(error)]
            if groups:
                sleep(pause)
        except QueenError as error:
            if len(groups) == 1:
                groups[0].settled(error)
            else:  # one that cannot be sent harms no other
                for group in groups:
                    _settle([group])
            return
        else:
            first = 0
            for group in groups:
                own = said[first : first + len(group.answers)]
                first += len(group.answers)
                lost = [error for error in own if error is not None]
                group.settled(_refused(lost, len(own)) if lost else None)
            return


def _send(answers: Sequence[Answer]) -> list[str | None]:
    """Send answers; for each of them the broker's reason to refuse it, or None."""
    said: list[str | None] = []
    for first in range(0, len(answers), _MOST):
        part = answers[first : first + _MOST]
        body = {"acknowledgments": [each.to.as_ack(each.status, each.reason) for each in part]}
        transport = part[0].to.lease.transport
        try:
            taken = transport.call("POST", "ack", "batch", body=body, kind=list[Acked])
        except QueenError as error:
            for each in part:
                each.to.in_doubt = each.to.in_doubt or may_have_happened(error)
            raise
        for each, given in zip(part, taken, strict=True):
            each.to.answered = True
            each.to.status = each.status
            said.append(None if given.success else f"{given.transaction_id}: {given.error}")
    return said


def _refused(lost: list[str], count: int) -> LeaseLost:
    return LeaseLost(f"{len(lost)} of {count} answers were refused, first {lost[0]}")


def _end(lease: Lease, until: float, error: QueenError) -> float:
    return lease.ends if isinstance(error, QueueFull) else min(lease.ends, until)
