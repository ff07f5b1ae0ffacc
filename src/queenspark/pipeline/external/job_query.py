"""The query of one job with an external source or sink."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from time import monotonic
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.functions import sum as sum_
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ...connectors.readers import Source
from ...sql import Plan, SqlError, thaw
from ...store.definitions import Definition, job_query_name
from ...store.pipeline import PipelineStore
from ...store.progress import End
from ..errors import JobFailed
from ..spark.secrets import Secrets, seal
from ..streams.streams_query import bucket_labels
from ..streams.window_processor import OUTPUT
from .job_processor import JobProcessor
from .job_rates import JobRates
from .job_sink import sink_of
from .job_source import NAME, OPTIONS, JobDataSource, JobOptions, source_of
from .packed_rows import OUTPUT as ROWS

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a batch in bytes, before decoding."""
_WELL_SECONDS = 10.0  # a query without batches counts as healthy this long after its start
_SLOW_START = "failed to connect back"
_SLOW_STARTS = 5
"""Up to this many in a row are not reported as failures of the job."""
_SUMS = ("records", "windows", "open_windows", "state_bytes")


class JobQuery:
    """Computes the rows of one version of a job and pushes or writes them."""

    def __init__(self, url: str, definition: Definition, *, checkpoints: str, max_rows: int) -> None:
        self._url = url
        self._definition = definition
        self.job = (definition.stream_id, definition.version)
        self.name = job_query_name(*self.job)
        #: Changes whenever the job does.
        self.seq = definition.seq
        self._checkpoint = f"{checkpoints.rstrip('/')}/{definition.stream_id}-{definition.version}"
        self._max_rows = max_rows
        self._store = PipelineStore(url)
        self._rates = JobRates(self._store, self.job)
        self._last = dict.fromkeys(_SUMS, 0)
        self._has_failed = True  # another process may have recorded a failure
        self._slow_starts = 0
        self._started_at = math.inf

    def start(self, spark: SparkSession, epoch: int) -> StreamingQuery:
        """Start the query. It runs until it is stopped, fails, or reaches the end of its source."""
        reads = self.source(epoch)
        spark.dataSource.register(JobDataSource)
        self._rates.measure()
        self._started_at = monotonic()
        buckets = bucket_labels(spark)
        # A source's options may contain secrets, such as a Kafka password.
        text = msgspec.json.encode(JobOptions(reads, buckets, self._max_rows, MAX_BYTES)).decode()
        reference = seal(Secrets(self._url, more={OPTIONS: text}))
        source = spark.readStream.format(NAME).option(OPTIONS, reference).load()
        body = self._definition.body
        sink = None if body.writes is None else sink_of(spark, body.writes, self._plan.columns, self.job[1])
        schema = OUTPUT if sink is None else f"{OUTPUT}, {ROWS}"
        emit = None if sink is None else sink.emit
        processor = JobProcessor(reference, epoch, buckets, self.job, emit)
        rows = source.groupBy("bucket").transformWithStateInPandas(processor, schema, "append", "none")
        rows = rows.observe("batch", *[sum_(name).alias(name) for name in _SUMS])
        if sink is None:
            stream = rows.writeStream.format("noop")
        else:
            sink.check(spark, self._checkpoint)
            stream = sink.writer(rows)
        return (
            stream.queryName(self.name)
            .option("checkpointLocation", self._checkpoint)
            .outputMode("append")
            .start()
        )

    def source(self, epoch: int) -> Source:
        """Return the source that the query reads."""
        return source_of(self._url, self._definition, self._plan, epoch)

    @property
    def _plan(self) -> Plan:
        """The job's plan. Raises JobFailed, for example if a newer release created the job."""
        try:
            return thaw(self._definition.body.query or {})
        except (SqlError, msgspec.MsgspecError) as error:
            raise JobFailed(f"the job cannot be planned: {error}") from error

    def report(self, batches: Sequence[StreamingQueryProgress]) -> dict[str, Any]:
        """Return the figures of the last batch, and rates over the last minute."""
        for batch in batches:
            if (found := (batch["observedMetrics"] or {}).get("batch")) is not None:
                observed = found.asDict()
                self._last = {name: int(observed[name] or 0) for name in _SUMS}
        if batches:
            self._slow_starts = 0
        if self._has_failed and (batches or monotonic() > self._started_at + _WELL_SECONDS):
            self._store.forget_failures(self.job)
            self._has_failed = False
        rates = self._rates.measure()
        return {
            "records": self._last["records"],
            "windows": self._last["windows"],
            "openWindows": self._last["open_windows"],
            "stateBytes": self._last["state_bytes"],
            "processedRowsPerSecond": rates.processed,
            "sealedWindowsPerSecond": rates.sealed,
            "lateRecordsPerSecond": rates.late,
        }

    def failed(self, reason: str) -> None:
        """Record why the query failed, for the brokers; it is retried.

        Spark gives a Python process ten seconds to start. On a busy machine that can be too short; this
        timeout is not the job's fault.
        """
        if _SLOW_START in reason and self._slow_starts < _SLOW_STARTS:
            self._slow_starts += 1
            return
        self._has_failed = True
        self._started_at = math.inf
        self._store.note_failure(self.job, End(run=""), (0, 0, 0), _said(reason))

    def close(self) -> None:
        """Disconnect."""
        self._store.close()


def _said(reason: str) -> str:
    """Strip the exception's name from a reason that does not need it."""
    return re.sub(r"^[\w.]*(ReadFailed|WriteFailed|JobFailed|Unreachable|Refused): ", "", reason)
