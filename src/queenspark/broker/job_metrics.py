"""Metrics of jobs, from the database: the same on every broker. Temporary jobs have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ..store.job import State
from .stream_metrics import Family, Row, families

_JOB = ("namespace", "job_name")  # Prometheus has a label `job` of its own

JOBS = {
    "watermark_seconds": Family(GaugeMetricFamily, "Watermark, as seconds since the epoch", "watermark"),
    "lag_seconds": Family(GaugeMetricFamily, "Age of the oldest message not yet read", "lag"),
    "open_windows": Family(GaugeMetricFamily, "Windows that are not sealed yet", "open_windows"),
    "records": Family(CounterMetricFamily, "Records that passed its condition", "records"),
    "rows": Family(CounterMetricFamily, "Rows emitted", "windows"),
    "late_records": Family(CounterMetricFamily, "Records that arrived after their window was sealed", "late"),
    "dropped_records": Family(CounterMetricFamily, "Late records dropped", "dropped"),
    "dead": Family(CounterMetricFamily, "Records and rows that failed", "dead"),
    "removed_records": Family(
        CounterMetricFamily, "Records that retention removed before they were read", "removed"
    ),
    "retention_held_seconds": Family(GaugeMetricFamily, "How long retention has been held back", "held"),
    "records_per_second": Family(GaugeMetricFamily, "Records processed per second", "processed"),
    "rows_per_second": Family(GaugeMetricFamily, "Rows emitted per second", "sealed"),
}


class JobMetrics(Collector):
    """The last measurement."""

    def __init__(self) -> None:
        self._jobs: Mapping[tuple[str, str], Row] = {}

    def update(self, jobs: Mapping[tuple[str, str], Row]) -> None:
        """Replace the measurement: jobs by namespace and name. A row includes the `state`."""
        self._jobs = jobs

    def collect(self) -> Iterable[Metric]:
        """Collect all families, including empty ones."""
        yield from families("job", JOBS, _JOB, [*self._jobs.items()])
        state = GaugeMetricFamily(
            "queenspark_job_state",
            "1 for the current state of a job, 0 for the others",
            labels=(*_JOB, "state"),
        )
        for labels, row in self._jobs.items():
            for name in get_args(State):
                state.add_metric((*labels, name), float(row["state"] == name))
        yield state
