"""Counters and gauges of one broker, for Prometheus and as JSON."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """What a broker counts. Names begin with `queenspark_`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._unlabelled: list[Counter | Gauge | Histogram] = []
        self.pushes = self._counter("pushed_messages", "Messages appended to the log")
        self.push_requests = self._counter("push_requests", "Push requests")
        self.duplicates = self._counter("duplicate_messages", "Pushed messages that were there already")
        self.pops = self._counter("popped_messages", "Messages handed out")
        self.pop_requests = self._counter("pop_requests", "Pop requests")
        self.acks = Counter(
            "queenspark_acks", "Answers of consumers by outcome", ["outcome"], registry=self.registry
        )
        self.lease_expiries = self._counter("lease_expiries", "Leases that expired and were handed out again")
        self.removed = self._counter("swept_messages", "Messages removed by retention")
        self.push_seconds = Histogram(
            "queenspark_push_seconds",
            "Time of a push request",
            registry=self.registry,
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
        )
        self._unlabelled.append(self.push_seconds)
        self.parked = self._gauge("parked_polls", "Long polls that wait")
        self.pool_size = self._gauge("pool_size", "Database connections at most")
        self.pool_used = self._gauge("pool_used", "Database connections in use")
        self.lag = Gauge(
            "queenspark_lag_messages", "Unanswered messages", ["queue", "group"], registry=self.registry
        )
        self.oldest = Gauge(
            "queenspark_oldest_unacked_seconds", "Age of the oldest unanswered message", ["queue", "group"],
            registry=self.registry,
        )  # fmt: skip
        self.dead_letters = Gauge(
            "queenspark_dead_letters", "Dead letters", ["queue", "group"], registry=self.registry
        )
        self.messages = self._gauge("messages", "Messages in the log")
        self.pending = self._gauge("pending_messages", "Messages that wait to be consumed")
        self.counts_age = self._gauge("counts_age_seconds", "Age of the counts of messages and lag")
        self.safe_time = self._gauge("safe_time_seconds", "Safe time, as seconds since the epoch")
        self.safe_time_lag = self._gauge("safe_time_lag_seconds", "How far safe time lies behind the clock")
        self.horizon_held = Gauge(
            "queenspark_horizon_held_seconds",
            "Age of the oldest transaction in flight, which holds safe time back",
            ["pid", "application", "state"],
            registry=self.registry,
        )

        self.stream_watermark = self._of_stream("watermark_seconds", "Watermark, as seconds since the epoch")
        self.stream_lag = self._of_stream("lag_seconds", "Age of the oldest record that was not read yet")
        self.stream_open = self._of_stream("open_windows", "Windows that are not sealed yet")
        self.stream_records = self._of_stream("records", "Records that were read")
        self.stream_sealed = self._of_stream("sealed_windows", "Windows that were sealed")
        self.stream_late = self._of_stream("late_records", "Records that came when their window was sealed")
        self.stream_dropped = self._of_stream("dropped_records", "Late records that were left out")
        self.stream_dead = self._of_stream("dead_records", "Records without a usable event time")
        self.stream_held = self._of_stream("retention_held_seconds", "How long retention has been held back")
        #: By the name of what they show.
        self.buckets = {
            "batch_records": self._of_bucket("batch_records", "Records of the last batch"),
            "batch_seconds": self._of_bucket(
                "batch_seconds", "Time that the last batch took before its push"
            ),
            "open_windows": self._of_bucket("open_windows", "Windows that are not sealed yet"),
            "records": self._of_bucket("records", "Records that were read"),
            "windows": self._of_bucket("sealed_windows", "Windows that were sealed"),
            "late": self._of_bucket("late_records", "Records that came when their window was sealed"),
            "dropped": self._of_bucket("dropped_records", "Late records that were left out"),
        }
        self.pipeline_active = self._gauge("pipeline_active", "Whether a pipeline process leads")
        self.pipeline_input = self._gauge("pipeline_input_rows_per_second", "Records that come in")
        self.pipeline_processed = self._gauge("pipeline_processed_rows_per_second", "Records it can process")
        self.pipeline_batch = self._gauge("pipeline_batch_seconds", "Time of the last batch")
        self.pipeline_backpressure = self._gauge(
            "pipeline_backpressure_ratio", "Input rate over processing rate; above 1 it falls behind"
        )

    def _of_bucket(self, name: str, text: str) -> Gauge:
        return Gauge(f"queenspark_bucket_{name}", text, ["bucket"], registry=self.registry)

    def _of_stream(self, name: str, text: str) -> Gauge:
        return Gauge(f"queenspark_stream_{name}", text, ["namespace", "stream"], registry=self.registry)

    def _counter(self, name: str, text: str) -> Counter:
        counter = Counter(f"queenspark_{name}", text, registry=self.registry)
        self._unlabelled.append(counter)
        return counter

    def _gauge(self, name: str, text: str) -> Gauge:
        gauge = Gauge(f"queenspark_{name}", text, registry=self.registry)
        self._unlabelled.append(gauge)
        return gauge

    def text(self) -> bytes:
        """The Prometheus text format."""
        return generate_latest(self.registry)

    def values(self) -> dict[str, float]:
        """Everything without labels, as a flat object."""
        return {
            sample.name: sample.value
            for metric in self._unlabelled
            for family in metric.collect()
            for sample in family.samples
            if not sample.labels and not sample.name.endswith("_created")
        }
