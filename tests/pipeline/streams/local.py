"""Queries of the pipeline in this process, without Spark: source, processor and sink, by batch."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

import msgspec
import pandas as pd
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

from queenspark.pipeline.external.job_processor import JobProcessor
from queenspark.pipeline.external.job_query import JobQuery
from queenspark.pipeline.external.job_source import JobOptions, JobReader
from queenspark.pipeline.spark.secrets import Secrets, seal
from queenspark.pipeline.streams import bucket_state
from queenspark.pipeline.streams.care import Care
from queenspark.pipeline.streams.stream_source import StreamsOptions, StreamsReader, steps_of_this_process
from queenspark.pipeline.streams.window_processor import WindowProcessor, sink_of_this_process
from queenspark.store.definitions import Definition


class Store:
    """Spark's state handle for a processor, in memory. A failed batch is rolled back."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None
        self.map: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.written: list[int] = []

    def getValueState(self, name: str, schema: str) -> "Store":  # noqa: N802 - Spark's names
        return self

    def getMapState(self, name: str, key: str, value: str) -> "Store":  # noqa: N802
        return self

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:  # noqa: N802
        return self.map.get(key)

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: N802
        self.map[key] = value
        self.written.append(len(value[0]))

    def removeKey(self, key: tuple[Any, ...]) -> None:  # noqa: N802
        del self.map[key]


class LocalQuery:
    """Runs batches until there is nothing to do; can be made to forget everything but its checkpoint."""

    _url: str
    _limit: ReadLimit
    _reader: Any = None

    def __init__(self, buckets: Sequence[int] = (0, 1)) -> None:
        self._buckets = tuple(buckets)
        self.outputs: list[pd.DataFrame] = []
        self.begin_again()

    def _reader_again(self) -> DataSourceStreamReader:
        raise NotImplementedError

    def _processor(self) -> WindowProcessor:
        raise NotImplementedError

    def begin_again(self) -> None:
        """Lose the checkpoint: the next batch is the first one of a new run."""
        self._stores = {bucket: Store() for bucket in self._buckets}
        self.restart()
        self.offset = self._reader.initialOffset()

    def restart(self) -> None:
        """Simulate a new process: only Spark's state remains."""
        bucket_state._remembered.clear()
        if self._reader is not None:
            self._reader.stop()
        self._reader = self._reader_again()

    def batch(self, *, fails_after: int | None = None) -> bool:
        """Run the next batch, if there is one; optionally fail after this many buckets, for a rerun."""
        end = self._reader.latestOffset(self.offset, self._limit)
        if end == self.offset:
            return False
        self._run(end, fails_after)
        if fails_after is not None:
            self.restart()
            self._run(end, None)
        self.offset = end
        return True

    def drain(self) -> int:
        """Run batches while there are some; return their number."""
        count = 0
        while self.batch():
            count += 1
        return count

    def close(self) -> None:
        """Disconnect."""
        self._reader.stop()
        sink_of_this_process(self._url).close()
        steps_of_this_process(self._url).close()

    def _run(self, end: dict[str, Any], fails_after: int | None) -> None:
        parts = self._reader.partitions(self.offset, end)
        batches = [batch.to_pandas() for part in parts for batch in self._reader.read(part)]
        rows = pd.concat(batches)
        stores = deepcopy(self._stores)
        for number, bucket in enumerate(self._buckets):
            if number == fails_after:
                return
            processor = self._processor()
            processor.init(cast(StatefulProcessorHandle, stores[bucket]))
            own = rows[rows["bucket"] == bucket]
            self.outputs += list(processor.handleInputRows((bucket,), iter([own]), cast(TimerValues, None)))
        if fails_after is None:
            self._stores = stores


class LocalPipeline(LocalQuery):
    """The streams query."""

    def __init__(
        self,
        url: str,
        buckets: Sequence[int] = (0, 1),
        max_rows: int = 1000,
        epoch: int = 0,
        encryption_key: bytes | None = None,
    ) -> None:
        self._url = url
        self._epoch = epoch
        self._limit = ReadMaxRows(max_rows)
        keys = None if encryption_key is None else (("", encryption_key),)
        self._options = StreamsOptions(seal(Secrets(url, keys)), tuple(buckets), max_rows)
        super().__init__(buckets)

    def _reader_again(self) -> DataSourceStreamReader:
        return StreamsReader(self._options)

    def _processor(self) -> WindowProcessor:
        return WindowProcessor(self._url, self._epoch, self._buckets, self._options.care)

    def be_careful(self, care: Care) -> None:
        """Run batches with this care, as the query does after a worker died."""
        self._options = msgspec.structs.replace(self._options, care=care)
        self.restart()


class LocalJob(LocalQuery):
    """The query of one job that reads outside."""

    def __init__(
        self, url: str, definition: Definition, *, max_rows: int = 1000, max_bytes: int = 10_000
    ) -> None:
        query = JobQuery(url, definition, checkpoints="", max_rows=max_rows)
        self._url = url
        self.job = query.job
        self._options = JobOptions(query.source(0), (0, 1), max_rows, max_bytes)
        query.close()
        self._limit = ReadMaxRows(max_rows)
        super().__init__((0, 1))

    def _reader_again(self) -> DataSourceStreamReader:
        return JobReader(self._options)

    def _processor(self) -> WindowProcessor:
        return JobProcessor(self._url, 0, self._buckets, self.job)
