"""Counters and gauges of one broker, for Prometheus and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ..store.definitions import job_name
from .http import Caller, Right
from .job_metrics import JobMetrics
from .stream_metrics import StreamMetrics


class Metrics:
    """The metrics of a broker. Names begin with `queenspark_`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._in_json: list[Collector] = []
        self.pushes = self._counter("pushed_messages", "Messages appended to the log")
        self.push_requests = self._counter("push_requests", "Push requests")
        self.duplicates = self._counter("duplicate_messages", "Pushed messages that were duplicates")
        self.pops = self._counter("popped_messages", "Messages delivered")
        self.windows_delivered = self._counter(
            "delivered_windows", "Windows delivered; also counted as messages"
        )
        self.pop_requests = self._counter("pop_requests", "Pop requests")
        self.acks = Counter("queenspark_acks", "Acks by outcome", ["outcome"], registry=self.registry)
        self.lease_expiries = self._counter(
            "lease_expiries", "Leases that expired unacked and were redelivered"
        )
        self.removed = self._counter("swept_messages", "Messages removed by retention")
        self.push_seconds = Histogram(
            "queenspark_push_seconds",
            "Duration of push requests",
            registry=self.registry,
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
        )
        self._in_json.append(self.push_seconds)
        self.parked = self._gauge("parked_polls", "Waiting long polls")
        self.pool_size = self._gauge("pool_size", "Maximum number of database connections")
        self.pool_used = self._gauge("pool_used", "Database connections in use")
        self.lag = Gauge(
            "queenspark_lag_messages", "Unacked messages", ["queue", "group"], registry=self.registry
        )
        self.oldest = Gauge(
            "queenspark_oldest_unacked_seconds", "Age of the oldest unacked message", ["queue", "group"],
            registry=self.registry,
        )  # fmt: skip
        self.dead_letters = Gauge(
            "queenspark_dead_letters", "Dead letters", ["queue", "group"], registry=self.registry
        )
        self.messages = self._gauge("messages", "Messages in the log")
        self.pending = self._gauge(
            "pending_messages", "Messages not yet delivered to the slowest group of their queue"
        )
        self.counts_age = self._gauge("counts_age_seconds", "Age of the counts of messages and lag")
        self.safe_time = self._gauge("safe_time_seconds", "Safe time, as seconds since the epoch")
        self.safe_time_lag = self._gauge("safe_time_lag_seconds", "Lag of safe time behind the clock")
        self.horizon_held = Gauge(
            "queenspark_horizon_held_seconds",
            "Age of the oldest open write transaction, which holds back the horizon",
            ["pid", "application", "state"],
            registry=self.registry,
        )

        self.delivery_delay = Histogram(
            "queenspark_stream_delivery_delay_seconds",
            "Time from the seal of a window to its first delivery to a group",
            ["namespace", "stream"],
            registry=self.registry,
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600),
        )
        self.streams = StreamMetrics()
        self.registry.register(self.streams)
        self._in_json.append(self.streams)
        self.jobs = JobMetrics()
        self.registry.register(self.jobs)

    def _counter(self, name: str, text: str) -> Counter:
        counter = Counter(f"queenspark_{name}", text, registry=self.registry)
        self._in_json.append(counter)
        return counter

    def _gauge(self, name: str, text: str) -> Gauge:
        gauge = Gauge(f"queenspark_{name}", text, registry=self.registry)
        self._in_json.append(gauge)
        return gauge

    def text(self, caller: Caller) -> bytes:
        """The Prometheus text format, without samples about names that the caller may not read."""
        return generate_latest(self.registry if caller.scopes is None else _Visible(self.registry, caller))

    def values(self) -> dict[str, float]:
        """All unlabelled metrics, as a flat object."""
        return {
            sample.name: sample.value
            for metric in self._in_json
            for family in metric.collect()
            for sample in family.samples
            if not sample.labels and not sample.name.endswith("_created")
        }


class _Visible(Collector):
    """The metrics without samples about names outside a caller's scopes."""

    def __init__(self, metrics: Collector, caller: Caller) -> None:
        self._metrics = metrics
        self._caller = caller

    def collect(self) -> Iterable[Metric]:
        """Collect all families, with fewer samples."""
        for family in self._metrics.collect():
            shown = Metric(family.name, family.documentation, family.type, family.unit)
            shown.samples = [sample for sample in family.samples if self._may_read(sample.labels)]
            yield shown

    def _may_read(self, labels: Mapping[str, str]) -> bool:
        match labels:
            case {"queue": queue}:
                return self._caller.may(Right.QUEUE_READ, queue)
            case {"namespace": namespace, "stream": name}:
                return self._caller.may(Right.STREAM_READ, f"{namespace}/{name}")
            case {"namespace": namespace, "job_name": name}:
                return self._caller.may(Right.JOB_READ, job_name(namespace, name))
            case _:
                return True
