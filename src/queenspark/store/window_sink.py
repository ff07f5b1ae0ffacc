"""The window sink: sealed windows into their window queues, exactly once for each batch of the pipeline.

Synchronous: it runs in the tasks of the pipeline. A batch of a bucket is one transaction with the windows,
the late and dead records, the stats and the bucket's progress; so a batch that is pushed again changes
nothing, and a process that no longer leads can write nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import uuid4

import msgspec
import polars as pl
import psycopg

from ..formats.window_message import is_same, payload
from ..windows.membership import LEAVES_OUT
from .database import OPTIONS
from .errors import DatabaseUnavailable, LostLeadership
from .news import pack
from .progress import End, Progress, Stream, name_of, to_progress
from .push import BLOCK
from .queries import query

Connection = psycopg.Connection[tuple[Any, ...]]

_MOST_KEYS = 500_000  # partition ids kept before starting over
_COPY_ROWS = 20_000
_TIMES = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # what seek can name: the years 1 to 9999
_KNOWN = {"queue_id": pl.Int64, "key": pl.String, "partition_id": pl.Int64}
_COUNTED = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "from_txid": pl.Int64, "from_id": pl.Int64,
}  # fmt: skip
_COPIED = (
    "txid", "id", "partition_id", "created_at", "queue_id", "transaction_id", "payload", "window_end",
)  # fmt: skip
_COPIED_ROWS = (
    "txid", "id", "partition_id", "created_at", "queue_id", "transaction_id", "payload", "headers",
)  # fmt: skip
_LATE = ("stream", "version", "key", "txid", "id", "time_us", "closed_us", "dropped")
_DEAD = ("stream", "version", "key", "txid", "id", "reason", "start_us", "end_us")
_FAILURES = ("stream", "version", "txid", "id", "tick", "error")
_CHUNK_ROWS = 2_000
_STATS = (
    "stream", "version", "watermark_us", "open_windows", "open_txid", "open_id", "records", "windows", "late",
    "dropped", "dead",
)  # fmt: skip


class Parts(NamedTuple):
    """What a batch gives in one bucket.

    Windows and rows go into the log in the order in which they are given; that of rows is the same each time.
    In `stats`, records, windows, late, dropped and dead are what the batch added; the others are as they are
    now.
    """

    windows: pl.DataFrame
    rows: pl.DataFrame
    late: pl.DataFrame
    dead: pl.DataFrame
    stats: pl.DataFrame
    #: Jobs that failed, with the place that their state is as of.
    failures: pl.DataFrame


class Pushed(NamedTuple):
    """How many windows and rows are new; and when the batch was pushed before, which jobs failed then."""

    new: int
    failed: dict[Stream, str] | None


class _Bucket(NamedTuple):
    """Whose progress is noted."""

    epoch: int
    bucket: int
    buckets: int

    def note(self, connection: Connection, progress: Progress) -> None:
        """Note how far it has come."""
        params = {**self._asdict(), "batch": progress.n, "state": msgspec.json.encode(progress).decode()}
        connection.execute(query("set_progress"), params)


class WindowSink:
    """Pushes the windows of one task's buckets. Connects at the first push; close it in the end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: Connection | None = None
        self._known = pl.DataFrame(schema=_KNOWN)
        self._me = uuid4().hex[:8]

    def push(self, epoch: int, bucket: int, buckets: int, end: Progress, parts: Parts) -> Pushed:
        """Push what a batch gave in one bucket; nothing if it was pushed before.

        `end` is what the bucket notes. A run that begins again from the log gives out the same as the one
        before up to where that one came; it is left out. Raises LostLeadership when `epoch` is not the
        leader's.
        """
        place = _Bucket(epoch, bucket, buckets)
        with self._connection() as connection:
            rows, pushed, queues = parts.rows, 0, set[str]()
            windows = parts.windows
            # A session must not be read before its dropped records are noted, with the last of the batch.
            while parts.late.is_empty() and windows.height > _CHUNK_ROWS:
                some = self._push_windows(connection, place, end, windows.head(_CHUNK_ROWS))
                if some is None:
                    break
                pushed, windows = pushed + some[0], windows.slice(_CHUNK_ROWS)
                self._notify(connection, some)
            chunks = -(-rows.height // _CHUNK_ROWS)
            for number in range(chunks - 1):
                chunk = rows.slice(number * _CHUNK_ROWS, _CHUNK_ROWS)
                more = self._push_chunk(connection, place, end, number, chunk)
                if more is None:
                    break
                pushed, queues = pushed + more[0], queues | more[1]
                self._notify(connection, more)
            last = rows.slice(max(0, chunks - 1) * _CHUNK_ROWS)
            with connection.transaction():
                self._check_epoch(connection, epoch)
                before = _before(connection, bucket, buckets)
                if before is not None and before.run == end.run and end.n <= before.n:
                    return Pushed(0, _failed(connection, bucket, end))
                is_past = before is not None and before.run != end.run and end.live <= before.live
                if is_past and before is not None:
                    windows, rows = (_unknown(connection, each, before) for each in (windows, rows))
                    found = [self._append(connection, windows), self._append_rows(connection, rows)]
                else:
                    if before is None or before.run != end.run:
                        last = rows
                    found = [self._append(connection, windows), self._append_rows(connection, last)]
                    self._note(connection, "add_late", parts.late, _LATE)
                    self._note(connection, "add_dropped", parts.late, _LATE, kinds=list(LEAVES_OUT))
                    self._note(connection, "add_dead", parts.dead, _DEAD)
                    self._note(connection, "add_stats", parts.stats, _STATS, bucket=bucket)
                    failed = {"bucket": bucket, "run": end.run, "batch": end.n}
                    self._note(connection, "add_failures", parts.failures, _FAILURES, **failed)
                    place.note(connection, end)
            # Outside of the transaction, like a push: commits with notifications wait for each other.
            for count, names in found:
                pushed += count
                self._notify(connection, (count, set(names)))
        return Pushed(pushed, None)

    def _push_windows(
        self, connection: Connection, place: _Bucket, end: Progress, windows: pl.DataFrame
    ) -> tuple[int, set[str]] | None:
        """Push some of the windows of a batch, so that no transaction holds the horizon back for long.

        When the batch is run again, those that are there are known by their ids. None as for `_push_chunk`.
        """
        with connection.transaction():
            self._check_epoch(connection, place.epoch)
            before = _before(connection, place.bucket, place.buckets)
            if before is None or before.run != end.run or end.n <= before.n:
                return None
            count, queues = self._append(connection, windows)
        return count, set(queues)

    def _push_chunk(
        self, connection: Connection, place: _Bucket, end: Progress, number: int, rows: pl.DataFrame
    ) -> tuple[int, set[str]] | None:
        """Push some of the rows of a batch, so that no transaction holds the horizon back for long.

        None when that is not possible: the bucket has noted nothing in this run yet, or the whole batch.
        """
        with connection.transaction():
            self._check_epoch(connection, place.epoch)
            before = _before(connection, place.bucket, place.buckets)
            if before is None or before.run != end.run or end.n <= before.n:
                return None
            if number < before.chunks:
                return 0, set()
            count, queues = self._append_rows(connection, rows)
            place.note(connection, msgspec.structs.replace(before, chunks=number + 1))
        return count, set(queues)

    def _notify(self, connection: Connection, pushed: tuple[int, set[str]]) -> None:
        count, queues = pushed
        if count:
            for text in pack(self._me, sorted(queues)):
                connection.execute(query("notify"), {"message": text})

    def counted_from(self, bucket: int, buckets: int, end: End, streams: pl.DataFrame) -> pl.DataFrame:
        """Where keys of count windows go on in a run that begins again: stream, version, key, txid, id.

        `streams` has stream, version, partitioned, size and step. Nothing for streams that an earlier run
        had not come this far with, and nothing beyond the place to which it came.
        """
        with self._connection() as connection:
            before = _before(connection, bucket, buckets)
            if before is None or before.run == end.run or end.live > before.live:
                return pl.DataFrame(schema=_COUNTED)
            names = [f"{name}s" if name != "partitioned" else name for name in streams.columns]
            known = streams.join(_known(connection, before), on=["stream", "version"], how="semi")
            params = known.rename(dict(zip(streams.columns, names, strict=True))).to_dict(as_series=False)
            found = connection.execute(query("counted_from"), params).fetchall()
        return pl.DataFrame(found, schema=_COUNTED, orient="row")

    def close(self) -> None:
        """Disconnect."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        known = self._known
        try:
            if self._opened is None or self._opened.closed:
                self._opened = psycopg.connect(
                    self._url, autocommit=True, options=OPTIONS, application_name="queenspark window sink"
                )
                self._opened.execute("SELECT check_generation()")
            yield self._opened
        except BaseException as error:
            self._known = known  # partitions that were made in a transaction that failed do not exist
            if not isinstance(error, psycopg.OperationalError):
                raise
            self.close()
            raise DatabaseUnavailable(f"the database is not available: {error}".strip()) from error

    def _check_epoch(self, connection: Connection, epoch: int) -> None:
        row = connection.execute(query("share_epoch")).fetchone()
        if row is None or row[0] != epoch:
            raise LostLeadership(f"epoch {epoch} has ended; the pipeline's is {row[0] if row else 'unknown'}")

    def _append(self, connection: Connection, windows: pl.DataFrame) -> tuple[int, list[str]]:
        """Insert the windows; how many are new, and their queues. Deleted streams get nothing."""
        windows, queues = self._held(connection, windows)
        if windows.is_empty():
            return 0, []
        txid, created_at = connection.execute(query("begin_windows")).fetchone() or (0, "")
        rows = self._with_partitions(connection, windows).with_columns(
            id=self._ids(connection, windows.height),
            txid=pl.lit(txid, dtype=pl.Int64),
            created_at=pl.lit(created_at),
        )
        try:
            with connection.transaction():
                _copy(connection, _messages(rows), "copy_windows", _COPIED)
        except psycopg.errors.UniqueViolation:
            rows = _revised(connection, rows)
            _copy(connection, _messages(rows), "copy_windows", _COPIED)
        return rows.height, list(queues.values())

    def _append_rows(self, connection: Connection, rows: pl.DataFrame) -> tuple[int, list[str]]:
        """Insert rows of jobs, without those that are there already; how many are new, and their queues."""
        rows, queues = self._held(connection, rows)
        if rows.is_empty():
            return 0, []
        txid, created_at = connection.execute(query("begin_windows")).fetchone() or (0, "")
        messages = self._with_partitions(connection, rows).with_columns(
            id=self._ids(connection, rows.height),
            txid=pl.lit(txid, dtype=pl.Int64),
            created_at=pl.lit(created_at),
        ).sort("partition_id", "transaction_id")  # fmt: skip
        try:
            with connection.transaction():
                _copy(connection, messages, "copy_rows", _COPIED_ROWS)
        except psycopg.errors.UniqueViolation:
            messages = _new_rows(connection, messages)
            _copy(connection, messages, "copy_rows", _COPIED_ROWS)
        return messages.height, list(queues.values())

    def _held(self, connection: Connection, frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, str]]:
        """What goes to queues that exist; they cannot be deleted before this transaction ends."""
        if frame.is_empty():
            return frame, {}
        ids = frame["queue_id"].unique().to_list()
        found = connection.execute(query("hold_window_queues"), {"ids": ids}).fetchall()
        queues = {int(queue_id): str(name) for queue_id, name in found}
        return frame.filter(pl.col("queue_id").is_in(list(queues))).cast({"queue_id": pl.Int64}), queues

    def _with_partitions(self, connection: Connection, windows: pl.DataFrame) -> pl.DataFrame:
        on = ["queue_id", "key"]
        missing = windows.select(on).unique().join(self._known, on=on, how="anti").sort(on)
        if not missing.is_empty():
            params = {"queue_ids": missing["queue_id"].to_list(), "names": missing["key"].to_list()}
            found = connection.execute(query("find_partitions"), params).fetchall()
            if len(found) < missing.height:
                connection.execute(query("ensure_partitions"), params)
                found = connection.execute(query("find_partitions"), params).fetchall()
            if self._known.height > _MOST_KEYS:
                self._known = self._known.join(windows, on=on, how="semi")
            self._known = pl.concat([self._known, pl.DataFrame(found, schema=_KNOWN, orient="row")])
        return windows.join(self._known, on=on, how="left", maintain_order="left")

    def _ids(self, connection: Connection, count: int) -> pl.Series:
        """So many new ids, rising."""
        blocks = connection.execute(query("take_blocks"), {"count": -(-count // BLOCK)}).fetchall()
        numbers = pl.Series([row[0] for row in blocks], dtype=pl.Int64).sort()
        ids = pl.DataFrame({"first": numbers * BLOCK}).select(
            pl.int_ranges(pl.col("first"), pl.col("first") + BLOCK).explode()
        )
        return ids.to_series().head(count)

    def _note(
        self,
        connection: Connection,
        statement: str,
        rows: pl.DataFrame,
        columns: tuple[str, ...],
        **more: Any,
    ) -> None:
        if not rows.is_empty():
            connection.execute(query(statement), {**more, **rows.select(columns).to_dict(as_series=False)})


def _before(connection: Connection, bucket: int, buckets: int) -> Progress | None:
    """What a bucket has noted; nothing when the keys were cut into another number of buckets then."""
    row = connection.execute(query("progress"), {"bucket": bucket}).fetchone()
    return to_progress(row[1]) if row is not None and row[0] == buckets else None


def _unknown(connection: Connection, windows: pl.DataFrame, before: Progress) -> pl.DataFrame:
    """The windows that an earlier run cannot have pushed, although it came this far."""
    if windows.is_empty():
        return windows
    known = _known(connection, before)
    return windows.join(known, on=["stream", "version"], how="anti", maintain_order="left")


def _known(connection: Connection, before: Progress) -> pl.DataFrame:
    """The streams and versions that an earlier run had come this far with."""
    found = connection.execute(query("versions_as_of"), {"seq": before.seq}).fetchall()
    done = [(stream, version) for stream, version in found if name_of((stream, version)) not in before.behind]
    return pl.DataFrame(done, schema={"stream": pl.Int64, "version": pl.Int32}, orient="row")


def _messages(rows: pl.DataFrame) -> pl.DataFrame:
    """Windows as rows of the log, in the order in which everybody inserts: no two sinks can deadlock."""
    end = pl.from_epoch(pl.col("end_us").clip(*_TIMES), "us").dt.to_string("%Y-%m-%d %H:%M:%S%.6f+00")
    return rows.with_columns(
        transaction_id=pl.format("{}:r{}", "window_id", "revision"),
        payload=payload(rows.columns),
        window_end=end,
    ).sort("partition_id", "transaction_id")


def _copy(connection: Connection, messages: pl.DataFrame, statement: str, columns: tuple[str, ...]) -> None:
    with connection.cursor() as cursor, cursor.copy(query(statement)) as copy:
        for part in messages.select(columns).iter_slices(_COPY_ROWS):
            copy.write(part.write_csv(include_header=False, quote_style="non_numeric"))


def _new_rows(connection: Connection, messages: pl.DataFrame) -> pl.DataFrame:
    """Rows without those of which the log has the id. Values may differ in the last digit of a double."""
    params = {
        "partition_ids": messages["partition_id"].to_list(),
        "transaction_ids": messages["transaction_id"].to_list(),
    }
    found = connection.execute(query("same_rows"), params).fetchall()
    known = pl.DataFrame(found, schema={"n": pl.Int64}, orient="row")
    numbered = messages.with_row_index("n", offset=1).cast({"n": pl.Int64})
    return numbered.join(known, on="n", how="anti", maintain_order="left").drop("n")


def _failed(connection: Connection, bucket: int, end: End) -> dict[Stream, str]:
    """The jobs that failed in a bucket and batch."""
    params = {"bucket": bucket, "run": end.run, "batch": end.n}
    found = connection.execute(query("failed_in"), params).fetchall()
    return {(int(stream), int(version)): str(error) for stream, version, error in found}


def _revised(connection: Connection, rows: pl.DataFrame) -> pl.DataFrame:
    """Windows without those that the log has already; others of which it has the id get its next revision.

    The first happens when the pipeline rebuilds its state from the log, the second when a key was forgotten
    and came back.
    """
    messages = _messages(rows).sort("id")
    params = {
        "partition_ids": messages["partition_id"].to_list(),
        "transaction_ids": messages["transaction_id"].to_list(),
    }
    found = connection.execute(query("same_windows"), params).fetchall()
    same = pl.DataFrame(found, schema={"n": pl.Int64, "there": pl.String}, orient="row")
    messages = messages.with_row_index("n", offset=1).cast({"n": pl.Int64}).join(same, on="n", how="left")
    is_new = [
        there is None or not is_same(there, text)
        for there, text in messages.select("there", "payload").iter_rows()
    ]
    messages = messages.filter(pl.Series(is_new, dtype=pl.Boolean))
    twice = pl.col("transaction_id").is_duplicated()
    window = ["partition_id", "window_id"]
    taken = messages.filter(pl.col("there").is_not_null() | twice).select(window).unique()
    params = {"partition_ids": taken["partition_id"].to_list(), "window_ids": taken["window_id"].to_list()}
    found = connection.execute(query("last_revisions"), params).fetchall()
    last = {int(n): int(revision) for n, revision in found}
    taken = taken.with_columns(
        last=pl.Series([last.get(n, 0) for n in range(1, taken.height + 1)], dtype=pl.Int64)
    )
    number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(window)
    revision = pl.coalesce(pl.col("last") + number, pl.col("revision"))
    messages = messages.sort("id").join(taken, on=window, how="left", maintain_order="left")
    return messages.with_columns(revision=revision).select(rows.columns)
