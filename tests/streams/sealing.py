"""Windows pushed as the pipeline will push them: through the window sink, from a leader's epoch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from queenspark.formats.window_message import lane_of
from queenspark.store.progress import to_progress
from queenspark.store.window_sink import Bucket, Parts, WindowSink

WINDOWS: dict[str, Any] = {
    "queue_id": pl.Int64, "key": pl.String, "window_id": pl.String, "start_us": pl.Int64, "end_us": pl.Int64,
    "count": pl.Int64, "revision": pl.Int64, "version": pl.Int32, "stream": pl.Int64,
    "sources": pl.List(pl.Struct({
        "source": pl.Int32, "first_txid": pl.Int64, "first_id": pl.Int64, "last_txid": pl.Int64,
        "last_id": pl.Int64,
    })),
    "replaces": pl.List(pl.String), "values": pl.String,
}  # fmt: skip
LATE = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "txid": pl.Int64, "id": pl.Int64,
    "time_us": pl.Int64, "closed_us": pl.Int64, "dropped": pl.Boolean,
}  # fmt: skip
DEAD = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "txid": pl.Int64, "id": pl.Int64,
    "reason": pl.String, "start_us": pl.Int64, "end_us": pl.Int64,
}  # fmt: skip
ROWS = {
    "stream": pl.Int64, "version": pl.Int32, "queue_id": pl.Int64, "key": pl.String,
    "transaction_id": pl.String, "payload": pl.String, "headers": pl.String,
}  # fmt: skip
FAILURES = {
    "stream": pl.Int64, "version": pl.Int32, "txid": pl.Int64, "id": pl.Int64, "tick": pl.Int64,
    "error": pl.String,
}  # fmt: skip
STATS = {
    "stream": pl.Int64, "version": pl.Int32, "watermark_us": pl.Int64, "open_windows": pl.Int64,
    "open_txid": pl.Int64, "open_id": pl.Int64, "records": pl.Int64, "windows": pl.Int64, "late": pl.Int64,
    "dropped": pl.Int64, "dead": pl.Int64,
}  # fmt: skip
MINUTE = 60_000_000

Position = tuple[int, int]


@dataclass(frozen=True)
class Sealed:
    """A sealed window of one stream; `sources` are ranges (queue id, first position, last position)."""

    key: str
    start_us: int
    end_us: int
    sources: Sequence[tuple[int, Position, Position]] = ()
    count: int = 1
    revision: int = 1
    version: int = 1
    replaces: Sequence[str] = ()
    suffix: str = ""
    values: str | None = None
    ordered: bool = True


def minute(key: str, number: int, **more: Any) -> Sealed:
    """The window of one minute, counted from the epoch."""
    return Sealed(key, number * MINUTE, (number + 1) * MINUTE, **more)


class Pipeline:
    """Stands where the streams query will: pushes batches into the window queues."""

    def __init__(self, url: str, epoch: int = 0, bucket: int = 0) -> None:
        self.sink = WindowSink(url)
        self.epoch = epoch
        self.bucket = bucket
        self.batch = 0
        self.run = "first"

    def seal(
        self,
        stream: int,
        queue_id: int,
        *windows: Sealed,
        batch: int | None = None,
        bucket: int | None = None,
        **more: Any,
    ) -> int:
        """Push windows of one stream as a batch of their own; return the number of new ones."""
        self.batch = self.batch + 1 if batch is None else batch
        return self.push(frame(stream, queue_id, windows), bucket=bucket, **more)

    def push(
        self,
        windows: pl.DataFrame | None = None,
        *,
        bucket: int | None = None,
        buckets: int = 1,
        state: str = "{}",
        rows: Sequence[dict[str, Any]] = (),
        late: Sequence[dict[str, Any]] = (),
        dead: Sequence[dict[str, Any]] = (),
        stats: Sequence[dict[str, Any]] = (),
        failures: Sequence[dict[str, Any]] = (),
        job: tuple[int, int] | None = None,
    ) -> int:
        """Push one batch of one bucket."""
        end = {"run": self.run, "n": self.batch, "tick": self.batch, "txid": 0, "id": 0}
        counts = dict.fromkeys(("open_windows", "records", "windows", "late", "dropped", "dead"), 0)
        progress = to_progress({**end, **json.loads(state)})
        parts = Parts(
            windows=pl.DataFrame(schema=WINDOWS) if windows is None else windows,
            rows=pl.DataFrame(list(rows), schema=ROWS),
            late=pl.DataFrame(list(late), schema=LATE),
            dead=pl.DataFrame(list(dead), schema=DEAD),
            stats=pl.DataFrame([{**counts, **row} for row in stats], schema=STATS),
            failures=pl.DataFrame(list(failures), schema=FAILURES),
        )
        bucket = self.bucket if bucket is None else bucket
        return self.sink.push(Bucket(self.epoch, bucket, buckets, job), progress, parts).new


def frame(stream: int, queue_id: int, windows: Sequence[Sealed]) -> pl.DataFrame:
    """Windows as the engine emits them."""
    rows = [
        {
            "queue_id": queue_id, "key": window.key, "window_id": window_id(stream, window),
            "start_us": window.start_us, "end_us": window.end_us, "count": window.count,
            "revision": window.revision, "version": window.version, "stream": stream,
            "sources": [
                {"source": queue, "first_txid": first[0], "first_id": first[1], "last_txid": last[0],
                 "last_id": last[1]}
                for queue, first, last in window.sources
            ],
            "replaces": list(window.replaces), "values": window.values,
        }
        for window in windows
    ]  # fmt: skip
    found = pl.DataFrame(rows, schema=WINDOWS)
    if not all(window.ordered for window in windows):
        partitions = [
            window.key if window.ordered else lane_of(window.key, window_id(stream, window))
            for window in windows
        ]
        found = found.with_columns(partition=pl.Series(partitions, dtype=pl.String))
    return found if any(window.values is not None for window in windows) else found.drop("values")


def window_id(stream: int, window: Sealed) -> str:
    """The id of a window, as the engine makes it."""
    version = f":v{window.version}" if window.version > 1 else ""
    return f"{stream}:{window.key}:{window.start_us // 1000}:{window.end_us // 1000}{version}{window.suffix}"
