"""The activity of this broker since its last sample: differences of its counters."""

from __future__ import annotations

from prometheus_client import Counter

from ..store.samples import COUNTED
from .metrics import Metrics


class Sampling:
    """Takes the samples of one broker."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last = self._totals()

    def take(self) -> dict[str, int]:
        """Return the counts since the previous call."""
        now = self._totals()
        before, self._last = self._last, now
        return {name: now[name] - before[name] for name in COUNTED}

    def _totals(self) -> dict[str, int]:
        metrics = self._metrics
        outcomes = {
            sample.labels["outcome"]: int(sample.value)
            for family in metrics.acks.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }
        acked = outcomes.get("completed", 0)
        return {
            "pushed": _value(metrics.pushes),
            "popped": _value(metrics.pops),
            "acked": acked,
            "failed": sum(outcomes.values()) - acked,
            "delivered": _value(metrics.windows_delivered),
        }


def _value(counter: Counter) -> int:
    (family,) = counter.collect()
    return int(next(sample.value for sample in family.samples if sample.name.endswith("_total")))
