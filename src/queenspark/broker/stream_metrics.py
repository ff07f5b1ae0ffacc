"""Metrics of streams, buckets and the pipeline, from the database: the same on every broker.

Totals are counted by the pipeline and never decrease, so they are exposed as counters. There is a label for
each stream and each bucket, never for a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_STREAM = ("namespace", "stream")
_BUCKET = ("bucket",)


class Family(NamedTuple):
    """One metric: its type, its help text, and the name of its value in a database row."""

    kind: type[CounterMetricFamily | GaugeMetricFamily]
    text: str
    column: str


STREAMS = {
    "watermark_seconds": Family(GaugeMetricFamily, "Watermark, as seconds since the epoch", "watermark"),
    "lag_seconds": Family(GaugeMetricFamily, "Age of the oldest record not yet read", "lag"),
    "open_windows": Family(GaugeMetricFamily, "Windows that are not sealed yet", "open_windows"),
    "records": Family(CounterMetricFamily, "Records that were read", "records"),
    "sealed_windows": Family(CounterMetricFamily, "Windows that were sealed", "windows"),
    "late_records": Family(CounterMetricFamily, "Records that arrived after their window was sealed", "late"),
    "dropped_records": Family(CounterMetricFamily, "Late records dropped", "dropped"),
    "dead_records": Family(
        CounterMetricFamily, "Records and windows that could not be read or computed", "dead"
    ),
    "retention_held_seconds": Family(GaugeMetricFamily, "How long retention has been held back", "held"),
    "arriving_per_second": Family(
        GaugeMetricFamily, "Messages arriving in the source queues, per second", "arriving"
    ),
    "processed_per_second": Family(GaugeMetricFamily, "Records processed per second", "processed"),
    "sealed_per_second": Family(GaugeMetricFamily, "Windows sealed per second", "sealed"),
    "backpressure_ratio": Family(
        GaugeMetricFamily,
        "Arrival rate over processing rate; above 1 the stream falls behind",
        "backpressure",
    ),
}
BUCKETS = {
    "batch_records": Family(GaugeMetricFamily, "Records of the last batch", "batch_records"),
    "batch_seconds": Family(
        GaugeMetricFamily, "Duration of the last batch, without pushing its windows", "batch_seconds"
    ),
    "watermark_seconds": Family(
        GaugeMetricFamily, "Watermark of the stream that is furthest behind", "watermark"
    ),
    "open_windows": Family(GaugeMetricFamily, "Windows that are not sealed yet", "open_windows"),
    "processed_per_second": Family(GaugeMetricFamily, "Records processed per second", "processed"),
    "records": Family(CounterMetricFamily, "Records that were read", "records"),
    "sealed_windows": Family(CounterMetricFamily, "Windows that were sealed", "windows"),
    "late_records": Family(CounterMetricFamily, "Records that arrived after their window was sealed", "late"),
    "dropped_records": Family(CounterMetricFamily, "Late records dropped", "dropped"),
}
PIPELINE = {
    "active": Family(GaugeMetricFamily, "1 while a pipeline is leading", "active"),
    "input_rows_per_second": Family(GaugeMetricFamily, "Records arriving per second", "inputRowsPerSecond"),
    "processed_rows_per_second": Family(
        GaugeMetricFamily, "Records processed per second", "processedRowsPerSecond"
    ),
    "batch_seconds": Family(GaugeMetricFamily, "Duration of the last batch", "batchSeconds"),
    "backpressure_ratio": Family(
        GaugeMetricFamily,
        "Arrival rate over processing rate; above 1 the pipeline falls behind",
        "backpressure",
    ),
}

Row = Mapping[str, Any]


class StreamMetrics(Collector):
    """The last measurement."""

    def __init__(self) -> None:
        self._streams: Sequence[tuple[tuple[str, ...], Row]] = ()
        self._buckets: Sequence[tuple[tuple[str, ...], Row]] = ()
        self._pipeline: Row = {"active": False}
        self._queries: Mapping[tuple[str, ...], Row] = {}

    def update(
        self,
        streams: Mapping[tuple[str, str], Row],
        buckets: Mapping[int, Row],
        pipeline: Row,
        queries: Mapping[str, Row],
    ) -> None:
        """Replace the measurement: streams by namespace and name, buckets by number, queries by name."""
        self._streams = [*streams.items()]
        self._buckets = [((str(bucket),), row) for bucket, row in buckets.items()]
        self._pipeline = pipeline
        self._queries = {(name,): row for name, row in queries.items()}

    def collect(self) -> Iterable[Metric]:
        """Collect all families, including empty ones."""
        yield from families("stream", STREAMS, _STREAM, self._streams)
        yield from families("bucket", BUCKETS, _BUCKET, self._buckets)
        pipeline = {**{family.column: 0.0 for family in PIPELINE.values()}, **self._pipeline}
        yield from families("pipeline", PIPELINE, (), [((), pipeline)])
        yield _histograms(
            "pipeline_batch_duration_seconds", "Batch durations by query", ["query"], self._queries
        )
        yield _histograms(
            "bucket_batch_duration_seconds", "Batch durations by bucket", _BUCKET, dict(self._buckets)
        )


def families(
    noun: str,
    families: Mapping[str, Family],
    labels: Sequence[str],
    rows: Sequence[tuple[tuple[str, ...], Row]],
) -> Iterable[Metric]:
    """Build the metrics of a noun: one sample per row and its labels."""
    for name, family in families.items():
        metric = family.kind(f"queenspark_{noun}_{name}", family.text, labels=labels)
        for values, row in rows:
            if (value := row.get(family.column)) is not None:
                metric.add_metric(values, float(value))
        yield metric


def _histograms(name: str, text: str, labels: Sequence[str], rows: Mapping[tuple[str, ...], Row]) -> Metric:
    """Build the histograms reported by the pipeline."""
    metric = HistogramMetricFamily(f"queenspark_{name}", text, labels=labels)
    for values, row in rows.items():
        if (histogram := row.get("batchSecondsHistogram")) is not None:
            bounds = [*(str(float(bound)) for bound in histogram["bounds"]), "+Inf"]
            buckets = list(zip(bounds, accumulate(histogram["counts"]), strict=True))
            metric.add_metric(values, buckets, histogram["sum"])
    return metric
