# Made from aio/acks.py by `make format`: change that file, not this one.
"""Acks and nacks: batched, and retried until a broker accepts them or their lease expires."""

from __future__ import annotations

import logging
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
_MOST = 10_000  # per request
_log = logging.getLogger("queenspark.client")


class Ackable(Protocol):
    """A leased message or window."""

    lease: Any  # Lease
    acked: bool
    in_doubt: bool
    status: Status | None

    def as_ack(self, status: Status = "completed", reason: str | None = None) -> dict[str, Any]:
        """Return the ack in its wire format."""


class Ack(NamedTuple):
    """The outcome of a message or window: ack, nack, retry or dead letter."""

    to: Ackable
    status: Status
    reason: str | None = None


def send_acks(acks: Sequence[Ack]) -> None:
    """Send acks; raise LeaseLost if the broker rejects one. Acks are idempotent.

    Acks batched under the same lease are flushed first: releasing a message ends the lease of those before
    it.
    """
    for lease in {each.to.lease for each in acks}:
        if lease.gathering is not None:
            lease.gathering.settled_under(lease)
    lost = [error for error in _send(acks) if error is not None]
    if lost:
        raise _refused(lost, len(acks))


def retry_under(lease: Lease, send: Callable[[], None]) -> None:
    """Retry until a broker accepts, or until one lease time has passed.

    Handling and acking are separate steps: an ack that does not get through never turns into a nack. On a
    full queue it retries for as long as the lease is renewed.
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
    """Acks sent in one request, with a callback for the outcome."""

    acks: Sequence[Ack]
    settled: Callable[[Exception | None], None]
    until: float

    def end(self, error: QueenError) -> float:
        """Return the deadline for retries after this error."""
        return _end(self.acks[0].to.lease, self.until, error)


class Acks:
    """Batches the acks of all workers. Acks given while a request is in flight share the next one.

    Workers do not wait for the outcome: `settled` is called with the error, or None, once it is known.
    """

    def __init__(self) -> None:
        self._news = Condition()
        self._waiting: list[_Group] = []
        #: Unsettled groups per lease.
        self._open: Counter[Lease] = Counter()
        self._over = False

    def give(self, acks: Sequence[Ack], settled: Callable[[Exception | None], None]) -> None:
        """Queue acks to be sent soon, all in one request."""
        lease = acks[0].to.lease

        def noted(error: Exception | None) -> None:
            with self._news:
                self._open[lease] -= 1
                if not self._open[lease]:
                    del self._open[lease]
                    self._news.notify()
            settled(error)

        lease.gathering = self
        with self._news:
            self._waiting.append(_Group(acks, noted, time.monotonic() + lease.timeout))
            self._open[lease] += 1
            if len(self._waiting) == 1:
                self._news.notify()

    def settled_under(self, lease: Lease) -> None:
        """Wait until all acks under this lease are settled."""
        with self._news:
            while lease in self._open and not self._over:
                self._news.wait()

    def end(self) -> None:
        """Let `run` return once everything is sent."""
        with self._news:
            self._over = True
            self._news.notify()

    def run(self) -> None:
        """Send queued acks until `end` is called."""
        while True:
            with self._news:
                while not self._waiting and not self._over:
                    self._news.wait()
                groups, self._waiting = self._waiting, []
            if not groups:
                return
            _settle(groups)


def _settle(groups: list[_Group]) -> None:
    """Send groups until each is accepted, rejected, or past its deadline."""
    failures = 0
    while groups:
        try:
            said = _send([each for group in groups for each in group.acks])
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
        except Exception as error:  # noqa: BLE001 - an unsent ack must not block those after it
            if not isinstance(error, QueenError):
                _log.exception("unexpected error while sending acks")
            if len(groups) == 1:
                groups[0].settled(error)
            else:  # one bad group must not fail the others
                for group in groups:
                    _settle([group])
            return
        else:
            first = 0
            for group in groups:
                own = said[first : first + len(group.acks)]
                first += len(group.acks)
                lost = [error for error in own if error is not None]
                group.settled(_refused(lost, len(own)) if lost else None)
            return


def _send(acks: Sequence[Ack]) -> list[str | None]:
    """Send acks; return the broker's rejection reason for each, or None."""
    said: list[str | None] = []
    for first in range(0, len(acks), _MOST):
        part = acks[first : first + _MOST]
        body = {"acknowledgments": [each.to.as_ack(each.status, each.reason) for each in part]}
        transport = part[0].to.lease.transport
        try:
            taken = transport.call("POST", "ack", "batch", body=body, kind=list[Acked])
        except Exception as error:
            for each in part:
                each.to.in_doubt = each.to.in_doubt or may_have_happened(error)
            raise
        for each, given in zip(part, taken, strict=True):
            each.to.acked = True
            each.to.status = each.status
            said.append(None if given.success else f"{given.transaction_id}: {given.error}")
    return said


def _refused(lost: list[str], count: int) -> LeaseLost:
    return LeaseLost(f"{len(lost)} of {count} acks were rejected; first: {lost[0]}")


def _end(lease: Lease, until: float, error: QueenError) -> float:
    return lease.ends if isinstance(error, QueueFull) else min(lease.ends, until)
