"""Bulk reads of the log, as Arrow: for Spark, in its driver and in its tasks.

with LogReader(url) as log:
    end = log.end([queue_id], BEGIN)
    for batch in log.read([queue_id], BEGIN, end, payload=True):
        ...

A reader is for one thread. It connects lazily, and none of its statements holds a snapshot for long.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
from adbc_driver_postgresql import dbapi as adbc
from psycopg import sql
from psycopg.conninfo import make_conninfo

from .database import translate
from .errors import DatabaseUnavailable
from .functions import SEARCH_PATH
from .news import CHANNEL, News
from .position import END, LARGEST, Position
from .queries import query, written

_APPLICATION = "queenspark spark"
_decode_news = msgspec.json.Decoder(News).decode
_OPTIONS = (
    f"{SEARCH_PATH} -c timezone=UTC -c statement_timeout=300s -c jit=off -c max_parallel_workers_per_gather=0"
)
# Row lookups must always use the index, even before the first ANALYZE.
_LOOKUP_OPTIONS = _OPTIONS + " -c enable_seqscan=off -c enable_bitmapscan=off"
#: Columns in addition to the position: none, and those of a scan.
_POSITIONS = sql.SQL("")
SCANNED = sql.SQL(", m.queue_id, m.partition_id, m.created_at")
#: Optional columns of a read.
_PAYLOAD = sql.SQL(", m.transaction_id, m.encrypted, m.payload")
_HEADERS = sql.SQL(", m.headers")
#: Packed types of the scanned columns.
_PACKED = {"txid": ">i8", "id": ">i8", "queue_id": ">i4", "partition_id": ">i8", "created_us": ">i8"}
_POSTGRES_EPOCH_US = 946_684_800_000_000  # PostgreSQL's epoch is the year 2000
_MOST_NAMES = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# The size of one statement, whose result is buffered before the caller gets it: a slow caller must not hold a
# snapshot, which would block VACUUM.
_STATEMENT_BYTES = 32 * 1024 * 1024
_STATEMENT_ROWS = 250_000
_FIRST_ROWS = 1000
_MOST_GROWTH = 8

# While messages wait for an older transaction to finish, check again with exponential backoff.
_ABOVE_HORIZON_SECONDS = 0.003
_ABOVE_HORIZON_LONGEST = 0.25
_OTHERS_SECONDS = 0.02


class LogReader:
    """Reads positions, ranges and times of the log, and waits for more."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lookups: psycopg.Connection[tuple[Any, ...]] | None = None
        self._listener: psycopg.Connection[tuple[Any, ...]] | None = None
        self._bulk: Any = None
        self._names: dict[int, str] = {}

    def __reduce__(self) -> tuple[type[LogReader], tuple[str]]:
        """Pickle only the URL; the other process connects by itself."""
        return LogReader, (self._url,)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect; the next call reconnects."""
        for connection in (self._lookups, self._listener, self._bulk):
            if connection is not None:
                connection.close()
        self._lookups = self._listener = self._bulk = None

    def queues(self, names: Sequence[str]) -> dict[str, int]:
        """Return the ids of those of these queues that exist."""
        return dict(self._rows(query("log_queue_ids"), {"names": list(names)}))

    def end(self, queue_ids: Sequence[int], after: Position, limit: int | None = None) -> Position | None:
        """Return the last readable position, at most `limit` messages ahead; None when nothing is new.

        It is below the horizon: no message will ever appear at or before it that is not there now.
        """
        ((horizon,),) = self._rows(query("log_horizon"))
        last = self.last(queue_ids, after, Position(horizon - 1, LARGEST))
        if last is None or limit is None:
            return last
        return self._nth(queue_ids, after, last, limit) or last

    def average_bytes(self, queue_ids: Sequence[int], after: Position, sample: int) -> float:
        """Return the mean size of the next messages after a position; 0 when there are none."""
        params = {"queue_ids": list(queue_ids), "txid": after.txid, "id": after.id, "sample": sample}
        ((found,),) = self._rows(query("log_average_bytes"), params)
        return float(found or 0.0)

    def next_end(
        self, queues: Mapping[str, int], after: Position, limit: int | None = None, seconds: float = 0.0
    ) -> Position | None:
        """Do the same for queues by name and id, waiting for new messages up to a timeout."""
        deadline = time.monotonic() + seconds
        pause = _ABOVE_HORIZON_SECONDS
        queue_ids = list(queues.values())
        if seconds > 0:
            self.listen()
        while True:
            end = self.end(queue_ids, after, limit)
            left = deadline - time.monotonic()
            if end is not None or left <= 0:
                return end
            if self.last(queue_ids, after, END) is None:
                self.wait(left, queues.keys())
            else:
                time.sleep(min(pause, left))
                pause = min(2 * pause, _ABOVE_HORIZON_LONGEST)

    def cuts(
        self, queue_ids: Sequence[int], after: Position, upto: Position, rows: int, most: int | None = None
    ) -> list[Position]:
        """Return positions that split a range into parts of `rows` messages, at most `most` of them.

        The last part may have fewer messages, or more when there are `most` cuts.
        """
        cuts: list[Position] = []
        cut = self._nth(queue_ids, after, upto, rows)
        while cut is not None and cut < upto:
            cuts.append(cut)
            if len(cuts) == most:
                break
            cut = self._nth(queue_ids, cut, upto, rows)
        return cuts

    def read(
        self,
        queue_ids: Sequence[int],
        after: Position,
        upto: Position,
        *,
        payload: bool,
        headers: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read messages after one position and up to another: batches in order, unsorted within a batch.

        Columns: txid, id, queue_id, partition, created_us; with `payload` also transaction_id, encrypted and
        payload; with `headers` also headers, as JSON text or null. Messages of a deleted partition are
        skipped, unless the reader already knows its name.
        """
        if not (payload or headers):
            return self._scan(queue_ids, after, upto)
        columns = sql.Composed([*([_PAYLOAD] if payload else []), *([_HEADERS] if headers else [])])
        return self._with_text(queue_ids, after, upto, columns)

    def _with_text(
        self, queue_ids: Sequence[int], after: Position, upto: Position, columns: sql.Composed
    ) -> Iterator[pa.RecordBatch]:
        rows = _FIRST_ROWS
        while after < upto:
            end = self._nth(queue_ids, after, upto, rows) or upto
            batches = self._fetch(queue_ids, after, end, columns)
            after = end
            if size := sum(batch.nbytes for batch in batches):
                growth = min(_STATEMENT_BYTES / size, _MOST_GROWTH)
                rows = max(1, min(int(rows * growth), _STATEMENT_ROWS))
            yield from batches

    def _scan(self, queue_ids: Sequence[int], after: Position, upto: Position) -> Iterator[pa.RecordBatch]:
        """Let PostgreSQL pack each column into one value, to avoid per-row work here."""
        while after < upto:
            messages = branches(queue_ids, after, upto, SCANNED)
            statement = written("log_scan", {"limit": _STATEMENT_ROWS}, branches=messages)
            (row,) = self._rows(statement, binary=True)
            columns = {
                name: np.frombuffer(packed or b"", kind).astype(kind[1:])
                for packed, (name, kind) in zip(row, _PACKED.items(), strict=True)
            }
            count = len(columns["id"])
            if count:
                yield self._named(columns)
            if count < _STATEMENT_ROWS:
                return
            after = Position(int(columns["txid"][-1]), int(columns["id"][-1]))

    def _named(self, columns: dict[str, npt.NDArray[np.signedinteger[Any]]]) -> pa.RecordBatch:
        """Replace partition ids by dictionary-encoded names."""
        encoded = pa.array(columns["partition_id"]).dictionary_encode()
        ids = encoded.dictionary.to_pylist()
        if len(self._names) > _MOST_NAMES:
            self._names.clear()
        if missing := [id_ for id_ in ids if id_ not in self._names]:
            self._names.update(self._rows(query("log_partitions"), {"ids": missing}))
        names = [self._names.get(id_) for id_ in ids]
        batch = pa.RecordBatch.from_pydict(
            {
                **{name: columns[name] for name in ("txid", "id", "queue_id")},
                "partition": pa.DictionaryArray.from_arrays(encoded.indices, [name or "" for name in names]),
                "created_us": columns["created_us"] + _POSTGRES_EPOCH_US,
            }
        )
        if None in names:  # deleted partitions
            there = np.array([name is not None for name in names])
            batch = batch.filter(pa.array(there[encoded.indices.to_numpy()]))
        return batch

    def safe_time(self, txid: int | None = None) -> int | None:
        """Return the safe time in microseconds, now or for a reader that stopped at this transaction id."""
        rows = self._rows(query("safe_time"), {"txid": txid})
        return (rows[0][0] - _EPOCH) // _MICROSECOND if rows else None

    def frontier(self) -> Position:
        """Return the position before all future pushes."""
        ((txid,),) = self._rows(query("log_frontier"))
        return Position(txid, 0)

    def earliest(self, queue_id: int) -> Position | None:
        """Return the position of the first remaining message of a queue."""
        rows = self._rows(query("log_first"), {"queue_id": queue_id})
        return Position(*rows[0]) if rows else None

    def position_at(self, queue_id: int, moment: datetime) -> Position:
        """Return the position just before the first message created at or after a time."""
        ((txid, id_),) = self._rows(query("log_position_at"), {"queue_id": queue_id, "time": moment})
        return Position(txid, id_)

    def listen(self) -> None:
        """Start listening for pushes; a later wait returns at once for any push in between."""
        self._listen()

    def wait(self, seconds: float, queues: Set[str]) -> bool:
        """Wait until a message is pushed to one of these queues; return False after the timeout."""
        deadline = time.monotonic() + seconds
        listener = self._listen()
        try:
            while (left := deadline - time.monotonic()) > 0:
                heard = [notify.payload for notify in listener.notifies(timeout=left, stop_after=1)]
                if any(not queues.isdisjoint(_woken(payload)) for payload in heard):
                    return True
                # Other queues may send hundreds of notifications a second: batch them.
                time.sleep(max(0.0, min(_OTHERS_SECONDS, deadline - time.monotonic())))
        except psycopg.OperationalError as error:
            self._listener = None
            raise DatabaseUnavailable(f"the listening connection broke: {error}") from error
        return False

    def last(self, queue_ids: Sequence[int], after: Position, upto: Position) -> Position | None:
        """Return the last message within a range, if there is one."""
        rows = self._rows(query("log_last"), {"queue_ids": list(queue_ids), **between(after, upto)})
        return Position(*rows[0]) if rows else None

    def _nth(self, queue_ids: Sequence[int], after: Position, upto: Position, n: int) -> Position | None:
        statement = written("log_nth", {"skip": n - 1}, branches=branches(queue_ids, after, upto))
        rows = self._rows(statement)
        return Position(*rows[0]) if rows else None

    def _fetch(
        self, queue_ids: Sequence[int], after: Position, upto: Position, columns: sql.Composed
    ) -> list[pa.RecordBatch]:
        values = {"queue_ids": list(queue_ids), **between(after, upto)}
        statement = written("log_read", values, columns=columns)
        used = self._bulk is not None
        try:
            try:
                return self._copy(statement)
            except adbc.Error:
                if not used:
                    raise
                return self._copy(statement)
        except adbc.Error as error:
            raise DatabaseUnavailable(f"the log could not be read: {error}") from error

    def _copy(self, statement: str) -> list[pa.RecordBatch]:
        if self._bulk is None:
            info = make_conninfo(self._url, options=_OPTIONS, application_name=_APPLICATION)
            self._bulk = adbc.connect(info, autocommit=True)
        try:
            with self._bulk.cursor() as cursor:
                cursor.execute(statement)
                table = cursor.fetch_arrow_table().combine_chunks()
                return [_with_microseconds(batch) for batch in table.to_batches()]
        except adbc.Error:
            # The driver does not tell whether the connection is still usable.
            self._bulk.close()
            self._bulk = None
            raise

    def _rows(
        self, statement: str, params: dict[str, Any] | None = None, *, binary: bool = False
    ) -> list[tuple[Any, ...]]:
        """Run a statement, reconnecting if the connection broke since its last use."""
        try:
            used = self._lookups
            try:
                return self._lookup(statement, params, binary)
            except psycopg.OperationalError:
                if used is None or not used.closed:
                    raise
                return self._lookup(statement, params, binary)
        except psycopg.Error as error:
            if (translated := translate(error)) is not None:
                raise translated from error
            raise

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run all `_rows` calls within as one transaction."""
        self._rows("SELECT 1")  # connects
        assert self._lookups is not None
        with self._lookups.transaction():
            yield

    def _lookup(self, statement: str, params: dict[str, Any] | None, binary: bool) -> list[tuple[Any, ...]]:
        if self._lookups is None or self._lookups.closed:
            self._lookups = self._connect(_LOOKUP_OPTIONS)
        cursor = self._lookups.execute(statement.encode(), params, binary=binary)
        return cursor.fetchall() if cursor.description else []

    def _listen(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._listener is None or self._listener.closed:
            try:
                self._listener = self._connect(_OPTIONS)
                self._listener.execute(f"LISTEN {CHANNEL}")
            except psycopg.OperationalError as error:
                raise DatabaseUnavailable(f"cannot listen to the database: {error}") from error
        return self._listener

    def _connect(self, options: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self._url, autocommit=True, options=options, application_name=_APPLICATION)


def _woken(payload: str) -> list[str]:
    """Return the queues named in a notification of pushes."""
    return _decode_news(payload).wake


@lru_cache(maxsize=4)
def log_of_this_process(url: str) -> LogReader:
    """Return the cached reader of this process. Spark reuses workers, so the connection outlives the task."""
    return LogReader(url)


def branches(
    queue_ids: Sequence[int], after: Position, upto: Position, columns: sql.SQL = _POSITIONS
) -> sql.Composed:
    """Build the SQL for the messages of several queues within a range, in order per queue."""
    values = between(after, upto)
    return sql.SQL(" UNION ALL ").join(
        sql.SQL(written("log_branch", {"queue_id": queue_id, **values}, columns=columns))
        for queue_id in queue_ids
    )


def between(after: Position, upto: Position) -> dict[str, int]:
    """Return a range as query parameters."""
    return {
        "after_txid": after.txid,
        "after_id": after.id,
        "upto_txid": upto.txid,
        "upto_id": upto.id,
    }


def _with_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    index = batch.schema.get_field_index("created_at")
    return batch.set_column(index, "created_us", batch.column(index).cast(pa.int64()))
