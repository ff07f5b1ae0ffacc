"""The window sink: writes sealed windows to their window queues, exactly once for each batch of the pipeline.

Synchronous: it runs in the tasks of the pipeline. A large batch of a bucket is written in transactions of
bounded size (`_chunks`), each with the number of windows and rows pushed so far. The last one, for most
batches the only one, also has the late and dead records, the stats and the bucket's progress. So pushing a
batch again writes only the missing part, and a process that lost leadership cannot write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeGuard
from uuid import uuid4

import msgspec
import polars as pl
import psycopg
from psycopg import sql

from ..windows.membership import LEAVES_OUT
from .database import OPTIONS
from .errors import DatabaseUnavailable, LostLeadership, Refused
from .log_writer import NOTHING, Connection, LogWriter, Written
from .news import pack
from .progress import End, Progress, Stream, name_of, to_progress
from .queries import query

_COUNTED = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "from_txid": pl.Int64, "from_id": pl.Int64,
}  # fmt: skip
_LATE = ("stream", "version", "key", "txid", "id", "time_us", "closed_us", "dropped")
_DEAD = ("stream", "version", "key", "txid", "id", "reason", "start_us", "end_us")
_FAILURES = ("stream", "version", "txid", "id", "tick", "error")
_CHUNK_WINDOWS = 1_000
_CHUNK_ROWS = 200
_GROUP = 10  # chunks of rows that are prepared together
_TELL_SECONDS = 0.02  # between two notifications of a batch: each is its own transaction
_STATS = (
    "stream", "version", "watermark_us", "open_windows", "open_txid", "open_id", "records", "windows", "late",
    "dropped", "dead",
)  # fmt: skip


#: `after`: the transaction after which the log has them.
REPEATS = {"queue_id": pl.Int64, "after": pl.Int64, "transaction_id": pl.String, "earlier_id": pl.String}


class Parts(NamedTuple):
    """The output of a batch in one bucket.

    Windows and rows are written to the log in the given order; that of rows is deterministic. In `stats`,
    records, windows, late, dropped and dead are increments of the batch; the others are current values.
    """

    windows: pl.DataFrame
    rows: pl.DataFrame
    late: pl.DataFrame
    dead: pl.DataFrame
    stats: pl.DataFrame
    #: Failed jobs, with the position of their state.
    failures: pl.DataFrame
    #: Rows that an earlier version may have emitted, with their earlier ids (REPEATS).
    repeats: pl.DataFrame = pl.DataFrame(schema=REPEATS)


class Pushed(NamedTuple):
    """The number of new windows and rows; if the batch was pushed before, also the jobs that failed then."""

    new: int
    failed: dict[Stream, str] | None


class Bucket(NamedTuple):
    """The owner of a progress: a bucket of the streams query, or of a job with its own query."""

    epoch: int
    bucket: int
    buckets: int
    job: Stream | None = None

    def note(self, connection: Connection, progress: Progress) -> None:
        """Write its progress."""
        params = {"epoch": self.epoch, "buckets": self.buckets, **self._key}
        params |= {"batch": progress.n, "state": msgspec.json.encode(progress).decode()}
        connection.execute(query("set_progress" if self.job is None else "set_job_progress"), params)

    def before(self, connection: Connection) -> Progress | None:
        """Read its progress; None if the number of buckets was different then."""
        statement = "progress" if self.job is None else "job_progress"
        row = connection.execute(query(statement), self._key).fetchone()
        return to_progress(row[1]) if row is not None and row[0] == self.buckets else None

    def begin(self, connection: Connection, end: End) -> None:
        """Start a new run of a job: everything is read and counted again."""
        before = self.before(connection)
        if before is None or before.run != end.run:
            if end.n > 1:
                raise Refused(
                    "the checkpoint of the job belongs to another database, or "
                    "QUEENSPARK_SPARK_SHUFFLE_PARTITIONS has changed: restore the old value, or delete the "
                    "checkpoint; the job then reads its source again from the start and pushes only "
                    "missing rows"
                )
            connection.execute(query("forget_job_stats"), self._key)
            self.note(connection, Progress(run=end.run))

    def push_rows(
        self, connection: Connection, before: Progress, after: Progress, rows: dict[str, Any]
    ) -> tuple[int | None, bool, int, list[str] | None]:
        """Push rows if its progress is `before`, which becomes `after`.

        Returns the leader's epoch, whether the rows were pushed, their number and their queues.
        """
        table = "progress" if self.job is None else "job_progress"
        key = sql.SQL(" AND ").join(
            sql.SQL("{} = {}").format(sql.Identifier("p", name), sql.Placeholder(name)) for name in self._key
        )
        statement = sql.SQL(query("push_rows")).format(progress=sql.Identifier("queenspark", table), key=key)
        states = {
            "before": msgspec.json.encode(before).decode(),
            "after": msgspec.json.encode(after).decode(),
        }
        params = {"epoch": self.epoch, "buckets": self.buckets, **self._key, **states, **rows}
        found = connection.execute(statement, params).fetchone()
        assert found is not None
        return found

    @property
    def _key(self) -> dict[str, Any]:
        job = {} if self.job is None else {"stream_id": self.job[0], "version": self.job[1]}
        return {"bucket": self.bucket, **job}


class _Chunk(NamedTuple):
    """A part of a batch for one transaction; `first` is the number of windows and rows before it."""

    first: int
    windows: pl.DataFrame
    rows: pl.DataFrame

    @property
    def end(self) -> int:
        """The number of windows and rows up to its end."""
        return self.first + self.windows.height + self.rows.height

    def without(self, streams: pl.DataFrame) -> _Chunk:
        """Remove the output of some streams and versions."""

        def others(frame: pl.DataFrame) -> pl.DataFrame:
            if frame.is_empty():
                return frame
            return frame.join(streams, on=["stream", "version"], how="anti", maintain_order="left")

        return self._replace(windows=others(self.windows), rows=others(self.rows))


class WindowSink:
    """Pushes the windows and rows of one task's buckets. Connects at the first push; must be closed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: Connection | None = None
        self._log = LogWriter()
        self._me = uuid4().hex[:8]

    def push(self, bucket: Bucket, end: Progress, parts: Parts) -> Pushed:
        """Push the output of a batch in one bucket; does nothing if it was pushed before.

        `end` becomes the bucket's progress. A run that restarts from the log repeats the output of the
        previous run up to that run's progress; the repeated output is skipped. Rows of a job with its own
        query have the same ids in every run: those in the log are skipped. Raises LostLeadership if the epoch
        is not the leader's.
        """
        chunks = _chunks(parts)
        with self._connection() as connection:
            if bucket.job is not None:
                with connection.transaction():
                    self._check_epoch(connection, bucket.epoch)
                    bucket.begin(connection, end)
            new = 0
            given = _given_out(connection, parts.repeats)
            untold = NOTHING
            told_at = time.monotonic()
            for group in _groups(chunks[:-1]):
                written, was_possible = self._push_chunks(connection, bucket, end, group, given)
                new += written.new
                untold += written
                if not was_possible:  # all of it goes with the last one
                    break
                if time.monotonic() > told_at + _TELL_SECONDS:
                    self._told(connection, untold)
                    untold, told_at = NOTHING, time.monotonic()
            self._told(connection, untold)
            with connection.transaction():
                self._check_epoch(connection, bucket.epoch)
                before = bucket.before(connection)
                _check_checkpoint(bucket, before, end)
                if before is not None and before.run == end.run and end.n <= before.n:
                    return Pushed(0, _failed(connection, bucket.bucket, end))
                goes_on = before is not None and before.run == end.run
                rest = chunks[-1] if goes_on else _Chunk(0, parts.windows, parts.rows)
                is_past = before is not None and not goes_on and end.live <= before.live
                if before is not None and is_past:
                    rest = rest.without(_known(connection, before))
                    written = self._write(connection, rest, given)
                else:
                    written = self._write(connection, rest, given)
                    self._note(connection, "add_late", parts.late, _LATE)
                    self._note(connection, "add_dropped", parts.late, _LATE, kinds=list(LEAVES_OUT))
                    self._note(connection, "add_dead", parts.dead, _DEAD)
                    self._note(connection, "add_stats", parts.stats, _STATS, bucket=bucket.bucket)
                    failed = {"bucket": bucket.bucket, "run": end.run, "batch": end.n}
                    self._note(connection, "add_failures", parts.failures, _FAILURES, **failed)
                    bucket.note(connection, end)
            return Pushed(new + self._told(connection, written), None)

    def _push_chunks(
        self, connection: Connection, bucket: Bucket, end: Progress, chunks: list[_Chunk], given: pl.DataFrame
    ) -> tuple[Written, bool]:
        """Push parts of a batch, each in its own transaction that also records it.

        Also returns whether that was possible. It is not if the bucket has no progress in this run yet, or if
        the whole batch is pushed.
        """
        written, done = NOTHING, 0
        if chunks[0].windows.is_empty():
            written, done = self._push_rows(connection, bucket, end, chunks, given)
        for chunk in chunks[done:]:
            with connection.transaction():
                self._check_epoch(connection, bucket.epoch)
                before = bucket.before(connection)
                if not _is_next(before, end, bucket):
                    return written, False
                if before.pushed < chunk.end:
                    written += self._write(connection, chunk, given)
                    bucket.note(connection, msgspec.structs.replace(before, pushed=chunk.end))
        return written, True

    def _push_rows(
        self, connection: Connection, bucket: Bucket, end: Progress, chunks: list[_Chunk], given: pl.DataFrame
    ) -> tuple[Written, int]:
        """Push new rows, each part in a single statement, up to the first part for which that fails.

        Also returns the number of parts pushed.
        """
        progress = bucket.before(connection)
        if not _is_next(progress, end, bucket) or progress.pushed != chunks[0].first:
            return NOTHING, 0
        written = NOTHING
        prepared = self._log.prepared(connection, [_without(chunk.rows, given) for chunk in chunks])
        for done, (chunk, rows) in enumerate(zip(chunks, prepared, strict=True)):
            before, progress = progress, msgspec.structs.replace(progress, pushed=chunk.end)
            try:
                epoch, is_pushed, new, queues = bucket.push_rows(connection, before, progress, rows)
            except psycopg.errors.UniqueViolation:  # some of them exist already
                return written, done
            _check(epoch, bucket.epoch)
            if not is_pushed:
                return written, done
            written += Written(new, set(queues or ()))
        return written, len(chunks)

    def _write(self, connection: Connection, chunk: _Chunk, given: pl.DataFrame) -> Written:
        """Write a part of a batch, without rows emitted by earlier versions."""
        rows = _without(chunk.rows, given)
        windows = self._log.windows(connection, chunk.windows)
        found = self._log.rows(connection, rows)
        return windows + found

    def _told(self, connection: Connection, written: Written) -> int:
        """Wake waiting readers, after the commit: commits with notifications are serialised."""
        if written.new:
            for text in pack(self._me, sorted(written.queues)):
                connection.execute(query("notify"), {"message": text})
        return written.new

    def counted_from(self, bucket: Bucket, end: End, streams: pl.DataFrame) -> pl.DataFrame:
        """Return where keys of count windows continue in a restarted run: stream, version, key, txid, id.

        `streams` has stream, version, partitioned, size and step. Streams beyond the progress of an earlier
        run are skipped, and so are positions beyond it.
        """
        with self._connection() as connection:
            before = bucket.before(connection)
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

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        known = self._log.copy()
        try:
            if self._opened is None or self._opened.closed:
                self._opened = psycopg.connect(
                    self._url, autocommit=True, options=OPTIONS, application_name="queenspark window sink"
                )
                self._opened.execute("SELECT check_generation()")
            yield self._opened
        except BaseException as error:
            self._log = known
            if not isinstance(error, psycopg.OperationalError):
                raise
            self.close()
            raise DatabaseUnavailable(f"the database is not available: {error}".strip()) from error

    def _check_epoch(self, connection: Connection, epoch: int) -> None:
        row = connection.execute(query("share_epoch")).fetchone()
        _check(row[0] if row else None, epoch)

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


def _is_next(before: Progress | None, end: Progress, bucket: Bucket) -> TypeGuard[Progress]:
    """Whether a batch is the next one of its bucket's run. Raises Refused if batches are missing."""
    _check_checkpoint(bucket, before, end)
    return before is not None and before.run == end.run and end.n > before.n


def _check_checkpoint(bucket: Bucket, before: Progress | None, end: Progress) -> None:
    """Raise Refused if batches of this run are missing: buckets of the streams query record all of them."""
    if bucket.job is None and before is not None and before.run == end.run and end.n > before.n + 1:
        raise Refused(
            f"the checkpoint is at batch {end.n}, but the database is at batch {before.n}: the database was"
            " restored from a backup, or a replica without its newest transactions was promoted; stop all"
            " pipelines, delete their checkpoint, and start them again"
        )


def _check(found: int | None, epoch: int) -> None:
    if found != epoch:
        raise LostLeadership(f"epoch {epoch} has ended; the pipeline's is {found or 'unknown'}")


def _without(rows: pl.DataFrame, given: pl.DataFrame) -> pl.DataFrame:
    """Remove rows emitted by earlier versions."""
    if given.is_empty() or rows.is_empty():
        return rows
    return rows.join(given, on=["queue_id", "transaction_id"], how="anti", maintain_order="left")


def _known(connection: Connection, before: Progress) -> pl.DataFrame:
    """Return the streams and versions that an earlier run had reached."""
    found = connection.execute(query("versions_as_of"), {"seq": before.seq}).fetchall()
    done = [(stream, version) for stream, version in found if name_of((stream, version)) not in before.behind]
    return pl.DataFrame(done, schema={"stream": pl.Int64, "version": pl.Int32}, orient="row")


def _failed(connection: Connection, bucket: int, end: End) -> dict[Stream, str]:
    """Return the jobs that failed in a bucket and batch."""
    params = {"bucket": bucket, "run": end.run, "batch": end.n}
    found = connection.execute(query("failed_in"), params).fetchall()
    return {(int(stream), int(version)): str(error) for stream, version, error in found}


def _given_out(connection: Connection, repeats: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that the log has from an earlier version: queue_id and transaction_id."""
    pieces = []
    for (queue_id, after), rows in repeats.partition_by("queue_id", "after", as_dict=True).items():
        params = {"queue_id": queue_id, "after": after, "transaction_ids": rows["earlier_id"].to_list()}
        found = connection.execute(query("rows_since"), params).fetchall()
        known = pl.DataFrame(found, schema={"earlier_id": pl.String}, orient="row")
        pieces.append(rows.join(known, on="earlier_id", how="semi"))
    return pl.concat([repeats.clear(), *pieces]).select("queue_id", "transaction_id")


def _chunks(parts: Parts) -> list[_Chunk]:
    """Split a batch into parts of bounded size, at least one: long transactions hold the horizon back.

    Deterministic for a batch. A session must not be read before its dropped records are recorded, with the
    last part; so windows, if any, stay together.
    """
    windows, rows = parts.windows, parts.rows
    found: list[_Chunk] = []
    first = 0
    if windows.height > _CHUNK_WINDOWS and parts.late.is_empty():
        # Windows of a key keep their order; keys are sorted.
        windows = windows.sort("queue_id", "key", maintain_order=True)
        while windows.height > _CHUNK_WINDOWS:
            found.append(_Chunk(first, windows.head(_CHUNK_WINDOWS), rows.clear()))
            windows, first = windows.slice(_CHUNK_WINDOWS), found[-1].end
    while rows.height > _CHUNK_ROWS:
        found.append(_Chunk(first, windows.clear(), rows.head(_CHUNK_ROWS)))
        rows, first = rows.slice(_CHUNK_ROWS), found[-1].end
    return [*found, _Chunk(first, windows, rows)]


def _groups(chunks: list[_Chunk]) -> Iterator[list[_Chunk]]:
    """Group parts that are prepared together: parts with windows are prepared one by one."""
    rows = [chunk for chunk in chunks if chunk.windows.is_empty()]
    yield from ([chunk] for chunk in chunks[: len(chunks) - len(rows)])
    yield from (rows[first : first + _GROUP] for first in range(0, len(rows), _GROUP))
