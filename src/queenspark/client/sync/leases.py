# Made from aio/leases.py by `make format`: change that file, not this one.
"""Leases in hand: answering under them, and renewing them while a handler works."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..duration import Duration, seconds
from ..errors import LeaseLost, NotFound, QueenError
from .tasks import Event, Task
from .transport import Transport

_SHARE = 3  # a lease is renewed after a third of its time


class Lease:
    """The right to answer what was taken, until it ends."""

    def __init__(self, transport: Transport, id_: str, timeout: float) -> None:
        self.transport = transport
        self.id = id_
        #: How long it lasts without renewal, in seconds.
        self.timeout = timeout
        self.ends = time.monotonic() + timeout

    def renew(self, duration: Duration | None = None) -> None:
        """Let it last this long from now, or as long as at first; it is never shortened."""
        wanted = self.timeout if duration is None else seconds("duration", duration)
        now = time.monotonic()
        body = {"seconds": max(1, math.ceil(wanted))}
        try:
            self.transport.call("POST", "lease", self.id, "extend", body=body)
        except NotFound:
            raise LeaseLost(f"lease {self.id} is over: what it was on goes to another consumer") from None
        self.ends = max(self.ends, now + wanted)


class Keeper:
    """Renews the leases that are in hand, each at a third of its time."""

    def __init__(self) -> None:
        self._due: dict[Lease, tuple[float, Callable[[QueenError | None], object]]] = {}
        self._changed = Event()
        self._task: Task | None = None
        self._closed = False

    @contextmanager
    def keeping(self, lease: Lease, tell: Callable[[QueenError | None], object]) -> Iterator[None]:
        """Keep a lease alive for the length of the block; `tell` hears of renewals, and of errors."""
        if self._task is None:
            self._task = Task(self._run)
        self._due[lease] = (time.monotonic() + lease.timeout / _SHARE, tell)
        self._changed.set()
        try:
            yield
        finally:
            self._due.pop(lease, None)

    def close(self) -> None:
        """Renew no more."""
        self._closed = True
        self._changed.set()
        if self._task is not None:
            self._task.join()

    def _run(self) -> None:
        while not self._closed:
            due = list(self._due.items())
            first = min((at for _, (at, _) in due), default=None)
            self._changed.wait(None if first is None else max(0.0, first - time.monotonic()))
            self._changed.clear()
            for lease, (at, tell) in due:
                if at <= time.monotonic() and lease in self._due:
                    self._renew(lease, tell)

    def _renew(self, lease: Lease, tell: Callable[[QueenError | None], object]) -> None:
        error: QueenError | None = None
        try:
            lease.renew()
        except LeaseLost as lost:
            self._due.pop(lease, None)
            tell(lost)
            return
        except QueenError as failure:
            error = failure
        if lease in self._due:
            pause = lease.timeout / _SHARE if error is None else min(1.0, lease.timeout / 10)
            self._due[lease] = (time.monotonic() + pause, tell)
        tell(error)
