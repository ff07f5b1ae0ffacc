"""The rows that a Spark source sends to the buckets of a query, and the head of that source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource

_COLUMNS = "bucket int, end string, records binary"
_ARROW = pa.schema([("bucket", pa.int32()), ("end", pa.string()), ("records", pa.binary())])


class BucketSource(DataSource):
    """A data source of rows for buckets; a subclass adds its name and its reader."""

    format: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return cls.format

    def schema(self) -> str:
        """The columns."""
        return _COLUMNS


def one_row(bucket: int, end: str | None, records: bytes | None) -> pa.RecordBatch:
    """Build a row for Spark."""
    return pa.record_batch([[bucket], [end], [records]], schema=_ARROW)


def announced(buckets: Iterable[int], end: str | None) -> Iterator[pa.RecordBatch]:
    """Yield a row with the batch for every bucket, if this task is the one that sends it."""
    if end is not None:
        for bucket in buckets:
            yield one_row(bucket, end, None)
