"""Denied administrative acts: few entries in the audit log, however often a caller tries."""

from __future__ import annotations

import time
from typing import NamedTuple

PERIOD_SECONDS = 3600.0
_MOST = 200  # kinds of denials at a time


class Denial(NamedTuple):
    """A caller without the right, and the route."""

    caller: str
    kind: str
    action: str


_OTHERS = Denial("others", "several", "several")


class _Period:
    """The denials of one kind since the first, which was recorded."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.more = 0
        self.address = ""


class Denials:
    """Counts denials: the first of a kind is recorded at once, the others of its hour as one entry."""

    def __init__(self) -> None:
        self._periods: dict[Denial, _Period] = {}

    def is_first(self, denial: Denial, address: str) -> bool:
        """Count a denial; return whether to record it now."""
        found = self._periods.get(denial)
        if found is None and len(self._periods) < _MOST:
            self._periods[denial] = _Period()
            return True
        if found is None:
            found = self._periods.setdefault(_OTHERS, _Period())
        found.more += 1
        found.address = address
        return False

    def repeated(self) -> list[tuple[Denial, str, int]]:
        """Take the counts of the hours that are over: the denial, its last address, how often it repeated."""
        now = time.monotonic()
        over = [each for each, period in self._periods.items() if now - period.began >= PERIOD_SECONDS]
        ended = [(each, self._periods.pop(each)) for each in over]
        return [(each, period.address, period.more) for each, period in ended if period.more]
