# Made from aio/leases.py by `make format`: change that file, not this one.
"""Leases in hand: answering under them, and renewing them while a handler works."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..duration import Duration, seconds
from ..errors import LeaseLost, NotFound, QueenError
from .tasks import Flag, Task
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
        self._extend(self.timeout if duration is None else seconds("duration", duration))

    def keep(self) -> None:
        """Renew it once, without patience: whoever keeps it alive comes again soon."""
        self._extend(self.timeout, within=self.timeout / _SHARE, retries=0)

    def _extend(self, wanted: float, **how: Any) -> None:
        now = time.monotonic()
        body = {"seconds": max(1, math.ceil(wanted))}
        try:
            self.transport.call("POST", "lease", self.id, "extend", body=body, **how)
        except NotFound:
            raise LeaseLost(f"lease {self.id} is over: what it was on goes to another consumer") from None
        self.ends = max(self.ends, now + wanted)


@contextmanager
def kept(lease: Lease, tell: Callable[[QueenError | None], object]) -> Iterator[None]:
    """Renew a lease at a third of its time, for the length of the block; `tell` hears of it, and of errors.

    Each lease is renewed by itself, so that a slow broker for one is not the end of the others. One that is
    lost is not told: that of a delivery which was just acked looks the same.
    """
    over = Flag()

    def keep() -> None:
        pause = lease.timeout / _SHARE
        while not over.wait(pause):
            error: QueenError | None = None
            try:
                lease.keep()
            except LeaseLost:
                return
            except QueenError as failure:
                error = failure
            pause = lease.timeout / _SHARE if error is None else min(1.0, lease.timeout / 10)
            if not over.is_set():
                tell(error)

    keeper = Task(keep)
    try:
        yield
    finally:
        over.set()
        keeper.cancel()
