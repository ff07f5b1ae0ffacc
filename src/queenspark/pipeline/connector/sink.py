"""Writes DataFrames to queues.

Tasks push their rows themselves. Duplicates are recognised by their transaction id, so a task or batch
repeated after a crash only adds missing rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ...store.headers import headers_size
from ...store.push import Item
from ...store.store import Store
from .items import RowIds, check_schema, to_items
from .options import WriteOptions

_PUSH_ROWS = 5000
_PUSH_BYTES = 8 * 1024 * 1024
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


class QueueBatchWriter(DataSourceArrowWriter):
    """Pushes the rows of a DataFrame once."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_schema(schema)
        self._options = options
        self._name = options.name or str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Push the rows of one task."""
        task = _task()
        # Set within foreachBatch, otherwise None.
        row_ids = RowIds(self._name, task.getLocalProperty(_BATCH_ID), task.partitionId())
        return _write(self._options, row_ids, iterator)


class QueueStreamWriter(DataSourceStreamArrowWriter):
    """Pushes the rows of every batch of a streaming query."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_schema(schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Push the rows of one task of one batch."""
        task = _task()
        name = self._options.name or task.getLocalProperty(_QUERY_ID)
        row_ids = RowIds(name, task.getLocalProperty(_BATCH_ID), task.partitionId())
        return _write(self._options, row_ids, iterator)


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None
    return task


def _write(options: WriteOptions, row_ids: RowIds, batches: Iterable[pa.RecordBatch]) -> WriterCommitMessage:
    items = to_items(batches, options.queue, row_ids, options.limits)
    asyncio.run(_push(options, items))
    return WriterCommitMessage()


async def _push(options: WriteOptions, items: Iterator[Item]) -> None:
    portions = _portions(items)
    first = next(portions, None)
    if first is None:
        return
    store = Store(options.url, pool_size=2, encryption_key=options.encryption_key)
    await store.open()
    try:
        appender = store.appender()
        for portion in chain([first], portions):
            await appender.append(portion)
    finally:
        await store.close()


def _portions(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Group items into lists of limited length and size."""
    portion: list[Item] = []
    size = 0
    for item in items:
        portion.append(item)
        size += len(item.payload) + headers_size(item.headers)
        if len(portion) >= _PUSH_ROWS or size >= _PUSH_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
