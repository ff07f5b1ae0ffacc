"""Packed output of a reading task for the buckets: records, rows, dead records and failures of jobs.

Frames with the same columns are packed together, because Spark copies each of them several times.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import polars as pl
from pandas.util import hash_array

from ...sql.running.rows import DEAD as DEAD_COLUMNS
from ...sql.running.rows import ROW
from ...store.progress import Stream

_RECORDS, _ROWS, _DEAD, _FAILED = b"r", b"o", b"d", b"f"
_OF = {"stream": pl.Int64, "version": pl.Int32}
ROWS = {**_OF, **ROW}
#: `count`: the number of records or rows that this one represents.
DEAD = {**_OF, **DEAD_COLUMNS, "count": pl.Int64}
FAILED = {**_OF, "reason": pl.String}


class Parcels:
    """Collects frames, and packs them by bucket."""

    def __init__(self, buckets: pl.Series) -> None:
        self._buckets = buckets
        self._frames: dict[tuple[bytes, tuple[str, ...]], list[pl.DataFrame]] = {}
        self._failed: list[tuple[int, int, str]] = []

    def add_records(self, records: pl.DataFrame, hashes: pl.Series | None = None) -> None:
        """Add records for the engine; a key always goes to the same bucket."""
        self._add(_RECORDS, self._with_bucket(records, hashes))

    def add_rows(self, rows: pl.DataFrame) -> None:
        """Add rows of jobs without state; one bucket gets all rows of a partition, in order."""
        self._add(_ROWS, self._with_bucket(rows.select(list(ROWS))))

    def add_dead(self, dead: pl.DataFrame, stream: Stream, count: int) -> None:
        """Add dead records of a job: `count` in total; `dead` is the sample to keep."""
        if dead.is_empty():
            nothing = dict.fromkeys(DEAD_COLUMNS)
            dead = pl.DataFrame(
                [{"stream": stream[0], "version": stream[1], **nothing}], schema={**_OF, **DEAD_COLUMNS}
            )
        first = pl.int_range(pl.len()) == 0
        counts = pl.when(first).then(count - dead.height + 1).otherwise(1).cast(pl.Int64)
        dead = dead.with_columns(count=counts).select(list(DEAD))
        self._add(_DEAD, self._with_bucket(dead.with_columns(pl.col("key").fill_null(""))))

    def add_failure(self, stream: Stream, reason: str) -> None:
        """Add a failed job, for every bucket."""
        self._failed.append((*stream, reason))

    def packed(self) -> Iterator[tuple[int, bytes]]:
        """The parcels, each with its bucket."""
        for (kind, _), frames in self._frames.items():
            frame = pl.concat(frames)
            for (bucket,), part in frame.partition_by("bucket", as_dict=True, include_key=False).items():
                yield int(bucket), kind + _bytes(part)
        if self._failed:
            failed = _FAILED + _bytes(pl.DataFrame(self._failed, schema=FAILED, orient="row"))
            yield from ((int(bucket), failed) for bucket in self._buckets)

    def _add(self, kind: bytes, frame: pl.DataFrame) -> None:
        if not frame.is_empty():
            columns = tuple(f"{name} {dtype}" for name, dtype in frame.schema.items())
            self._frames.setdefault((kind, columns), []).append(frame)

    def _with_bucket(self, frame: pl.DataFrame, hashes: pl.Series | None = None) -> pl.DataFrame:
        """Add the bucket of each row: a stable hash of stream and key."""
        count = self._buckets.len()
        if hashes is None:
            hashes = key_hashes(frame["key"])
        number = (hashes % count + frame["stream"].cast(pl.UInt64)) % count
        return frame.with_columns(bucket=self._buckets.gather(number))


def key_hashes(keys: pl.Series) -> pl.Series:
    """A hash of each key, the same in every process and version."""
    codes = keys.cast(pl.Categorical(pl.Categories.random())).to_physical().alias("code")
    names = pl.DataFrame([keys.alias("key"), codes]).unique("code", keep="any").sort("code")["key"]
    hashes = pl.Series(hash_array(names.to_numpy().astype(object), categorize=False), dtype=pl.UInt64)
    return hashes.gather(codes)


class Unpacked(NamedTuple):
    """The input of a bucket: records in frames of the same columns, in log order, and the rest."""

    records: list[pl.DataFrame]
    rows: pl.DataFrame
    dead: pl.DataFrame
    failed: dict[Stream, str]

    def without(self, streams: Collection[Stream]) -> Unpacked:
        """Exclude the input of some streams."""
        if not streams:
            return self
        unwanted = pl.DataFrame(list(streams), schema=_OF, orient="row")

        def others(frame: pl.DataFrame) -> pl.DataFrame:
            return frame.join(unwanted, on=list(_OF), how="anti", maintain_order="left")

        records = [others(frame) for frame in self.records]
        return self._replace(records=records, rows=others(self.rows), dead=others(self.dead))


def unpack(parcels: Sequence[bytes]) -> Unpacked:
    """Unpack parcels into frames."""
    records: dict[tuple[str, ...], list[pl.DataFrame]] = {}
    found: dict[bytes, list[pl.DataFrame]] = {_ROWS: [], _DEAD: [], _FAILED: []}
    for parcel in parcels:
        kind, frame = parcel[:1], pl.read_ipc_stream(parcel[1:])
        if kind == _RECORDS:
            columns = tuple(f"{name} {dtype}" for name, dtype in frame.schema.items())
            records.setdefault(columns, []).append(frame)
        else:
            found[kind].append(frame)
    failed = pl.concat([pl.DataFrame(schema=FAILED), *found[_FAILED]])
    return Unpacked(
        [pl.concat(frames).sort("txid", "id") for frames in records.values()],
        pl.concat(found[_ROWS] or [pl.DataFrame(schema=ROWS)]),
        pl.concat([pl.DataFrame(schema=DEAD), *found[_DEAD]]),
        {(stream, version): reason for stream, version, reason in failed.iter_rows()},
    )


def _bytes(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_ipc_stream(file, compression="zstd")
    return file.getvalue()
