"""The messages that this broker pushed, popped and acked in the last minute, by queue and group."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..store.delivery import Ack, Acked
from ..store.push import Item, Pushed
from ..store.rates import Rate
from ..store.samples import STEP_SECONDS

WINDOW_SECONDS = 60.0

_REPEAT_SECONDS = 25.0
"""Unchanged rates are returned again after this time; the database forgets them after a minute."""

_Key = tuple[str, str | None]

NamesOf = Callable[[Iterable[int]], Awaitable[dict[int, tuple[str, str]]]]
"""Returns the names of partitions and of their queues by partition id."""


class _Step(NamedTuple):
    """The counts of a few seconds: by queue without a group, or by queue and group."""

    began: float
    ended: float
    pushed: Counter[_Key]
    popped: Counter[_Key]
    acked: Counter[_Key]


def shown_rates(rates: dict[str, Any]) -> dict[str, float]:
    """The rates of a queue or group, as shown by the API."""
    return {f"{name}PerSecond": round(rate, 3) for name, rate in rates.items()}


class Activity:
    """Counts messages as they pass. Acks are counted by partition; their queues are looked up later."""

    def __init__(self, names_of: NamesOf, clock: Callable[[], float] = time.monotonic) -> None:
        self._names_of = names_of
        self._clock = clock
        self._steps: deque[_Step] = deque()
        self._totals = _Step(0, 0, Counter(), Counter(), Counter())
        self._returned: dict[_Key, tuple[Rate, float]] = {}
        self._began = clock()
        self._pushed: Counter[_Key] = Counter()
        self._popped: Counter[_Key] = Counter()
        self._acked: Counter[tuple[int, str]] = Counter()
        self._auto_acked: Counter[_Key] = Counter()

    def pushed(self, items: Sequence[Item], results: Sequence[Pushed]) -> None:
        """Count pushed messages, without duplicates."""
        self._pushed.update(
            [(item.queue, None) for item, result in zip(items, results, strict=True) if not result.duplicate]
        )

    def popped(self, queue: str, group: str, count: int, *, auto_ack: bool = False) -> None:
        """Count delivered messages."""
        self._popped[queue, group] += count
        if auto_ack:
            self._auto_acked[queue, group] += count

    def acked(self, acks: Sequence[Ack], results: Sequence[Acked]) -> None:
        """Count completed messages."""
        self._acked.update(
            [
                (ack.partition_id, ack.group)
                for ack, result in zip(acks, results, strict=True)
                if result.outcome == "completed"
            ]
        )

    async def rates(self) -> list[Rate]:
        """Return the rates of queues and groups over the last minute that have changed.

        Others are repeated from time to time. When their activity ends, they are returned once more, with
        zeros.
        """
        await self._end_step()
        latest = self._began
        while self._steps and self._steps[0].ended < latest - WINDOW_SECONDS:
            self._drop_step()
        began = self._steps[0].began if self._steps else latest
        seconds = max(STEP_SECONDS, latest - began)
        _, _, pushed, popped, acked = self._totals
        found = []
        for key in self._returned.keys() | pushed.keys() | popped.keys() | acked.keys():
            counts = pushed[key], popped[key], acked[key]
            rate = Rate(*key, *(round(count / seconds, 3) for count in counts))
            before, at = self._returned.get(key, (None, 0.0))
            if rate != before or at <= latest - _REPEAT_SECONDS:
                found.append(rate)
                self._returned[key] = rate, latest
            if not any(counts):
                del self._returned[key]
        return found

    async def _end_step(self) -> None:
        """Add the counts since the last step as a step."""
        now = self._clock()
        pushed, popped, by_partition, acked = self._pushed, self._popped, self._acked, self._auto_acked
        self._pushed, self._popped, self._acked, self._auto_acked = (
            Counter(), Counter(), Counter(), Counter(),
        )  # fmt: skip
        began, self._began = self._began, now
        names = await self._names_of({partition_id for partition_id, _ in by_partition})
        for (partition_id, group), count in by_partition.items():
            if partition_id in names:
                acked[names[partition_id][1], group] += count
        self._steps.append(_Step(began, now, pushed, popped, acked))
        for total, counts in zip(self._totals[2:], (pushed, popped, acked), strict=True):
            total.update(counts)

    def _drop_step(self) -> None:
        step = self._steps.popleft()
        for total, counts in zip(self._totals[2:], step[2:], strict=True):
            for key, count in counts.items():
                total[key] -= count
                if not total[key]:
                    del total[key]
