"""The rates of a job with its own query."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from ...store.pipeline import PipelineStore, Totals
from ...store.progress import Stream
from ..streams.sliding import Counts, Rates, Sliding, rates_of


class JobRates:
    """Measures the rates and publishes them to the brokers."""

    def __init__(self, store: PipelineStore, job: Stream, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._job = job
        self._clock = clock
        self._sliding: Sliding | None = None
        self._told = Rates()

    def measure(self) -> Rates:
        """Return the rates over the last minute, or since the first measurement."""
        found = self._store.totals()[0].get(self._job[0])
        totals = Totals(0, 0, 0) if found is None or found.version != self._job[1] else found.totals
        # The arrival rate of an external source is unknown, so backpressure is not meaningful here.
        counts = Counts(totals.records, *totals)
        at = self._clock()
        if self._sliding is None:
            self._sliding = Sliding(at, counts)
        self._sliding.add(at, counts)
        rates = rates_of(self._sliding.counts, self._sliding.seconds)
        if rates != self._told:
            columns = {name: [value] for name, value in rates._asdict().items()}
            self._store.set_rates({"stream": [self._job[0]], **columns})
            self._told = rates
        return rates
