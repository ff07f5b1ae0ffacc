"""Counters of the demo: written by its producers and consumers, read by its screen."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from queenspark.client import Event, Window

SHOWN = 40
RATE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Delivered:
    """A window that a group has handled."""

    stream: str
    group: str
    key: str
    start: float
    end: float
    count: int
    #: Seconds from the end of the window and its grace to its delivery.
    delay: float
    said: str


@dataclass
class GroupCount:
    """Counters of one group of one stream."""

    windows: int = 0
    messages: int = 0
    failed: int = 0


@dataclass
class Ledger:
    """Counts, the newest windows, and the broker's progress."""

    began: float = field(default_factory=time.monotonic)
    pushed: Counter[str] = field(default_factory=Counter)
    groups: dict[tuple[str, str], GroupCount] = field(default_factory=dict)
    windows: deque[Delivered] = field(default_factory=lambda: deque(maxlen=SHOWN))
    delays: list[float] = field(default_factory=list)
    first_window: float | None = None
    pipeline: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, dict[str, Any]] = field(default_factory=dict)
    _pushes: deque[tuple[float, int]] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    @property
    def seconds(self) -> float:
        """How long the demo has been running."""
        return time.monotonic() - self.began

    @property
    def total(self) -> int:
        """Messages pushed."""
        return sum(self.pushed.values())

    @property
    def rate(self) -> float:
        """Recent messages pushed per second."""
        with self._lock:
            since = time.monotonic() - RATE_SECONDS
            while self._pushes and self._pushes[0][0] < since:
                self._pushes.popleft()
            return sum(count for _, count in self._pushes) / min(RATE_SECONDS, max(0.5, self.seconds))

    def push(self, queue: str, count: int) -> None:
        """Messages were stored."""
        with self._lock:
            self.pushed[queue] += count
            self._pushes.append((time.monotonic(), count))

    def deliver(self, window: Window, grace: float, said: str) -> None:
        """A group has handled a window."""
        end = window.end.timestamp()
        delay = time.time() - end - grace
        with self._lock:
            if self.first_window is None:
                self.first_window = self.seconds
            count = self.groups.setdefault((window.stream, window.group), GroupCount())
            count.windows += 1
            count.messages += window.count
            self.delays.append(delay)
            self.windows.append(
                Delivered(
                    window.stream,
                    window.group,
                    window.key,
                    window.start.timestamp(),
                    end,
                    window.count,
                    delay,
                    said,
                )
            )

    def listen(self, event: Event) -> None:
        """Count failed deliveries."""
        if event.kind == "failed" and event.group is not None:
            with self._lock:
                self.groups.setdefault((event.name, event.group), GroupCount()).failed += 1

    def latest(self, most: int) -> list[Delivered]:
        """The newest windows, newest first."""
        with self._lock:
            return list(self.windows)[-most:][::-1]

    def median_delay(self) -> float | None:
        """The median of recent delays."""
        with self._lock:
            last = sorted(self.delays[-SHOWN:])
        return last[len(last) // 2] if last else None
