"""Writes windows and rows to the log for the window sink."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl
import psycopg

from ..formats.window_message import is_same, payload
from .push import BLOCK
from .queries import query

Connection = psycopg.Connection[tuple[Any, ...]]

_MOST_KEYS = 500_000  # cached partition ids before the cache is cleared
_COPY_ROWS = 20_000
_TIMES = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # the range of seek: years 1 to 9999
_KNOWN = {"queue_id": pl.Int64, "name": pl.String, "partition_id": pl.Int64}
_WINDOW = (
    "txid", "id", "partition_id", "created_at", "queue_id", "transaction_id", "payload", "window_end",
)  # fmt: skip
_ROW = ("txid", "id", "partition_id", "created_at", "queue_id", "transaction_id", "payload", "headers")


class Written(NamedTuple):
    """The number of new windows or rows, and their queues."""

    new: int
    queues: set[str]

    def __add__(self, other: Written) -> Written:  # type: ignore[override]  # of tuple
        return Written(self.new + other.new, self.queues | other.queues)


NOTHING = Written(0, set())


class LogWriter:
    """Writes windows and rows in the given order. Caches partition ids by name."""

    def __init__(self) -> None:
        self._known = pl.DataFrame(schema=_KNOWN)

    def copy(self) -> LogWriter:
        """Copy the cache, to restore it on rollback: partitions of a failed transaction do not exist."""
        other = LogWriter()
        other._known = self._known
        return other

    def windows(self, connection: Connection, windows: pl.DataFrame) -> Written:
        """Insert windows; existing ones are skipped or revised, and windows of deleted streams dropped."""
        windows, queues = _held(connection, windows)
        if windows.is_empty():
            return NOTHING
        rows = self._positioned(connection, windows)
        try:
            with connection.transaction():
                _copy(connection, _messages(rows), "copy_windows", _WINDOW)
        except psycopg.errors.UniqueViolation:
            rows = _revised(connection, rows)
            _copy(connection, _messages(rows), "copy_windows", _WINDOW)
        return Written(rows.height, queues)

    def rows(self, connection: Connection, rows: pl.DataFrame) -> Written:
        """Insert rows of jobs, skipping existing ones; rows of deleted jobs are dropped."""
        rows, queues = _held(connection, rows)
        if rows.is_empty():
            return NOTHING
        messages = self._positioned(connection, rows).sort("partition_id", "transaction_id")
        try:
            with connection.transaction():
                _copy(connection, messages, "copy_rows", _ROW)
        except psycopg.errors.UniqueViolation:
            messages = _new_rows(connection, messages)
            _copy(connection, messages, "copy_rows", _ROW)
        return Written(messages.height, queues)

    def prepared(self, connection: Connection, parts: list[pl.DataFrame]) -> list[dict[str, Any]]:
        """Prepare rows of jobs for `push_rows`: return its parameters that describe each part.

        Ids, partitions and texts are prepared without a transaction, which would hold the horizon back.
        """
        rows = pl.concat([part.with_columns(part=pl.lit(n)) for n, part in enumerate(parts)])
        # Deleted queues have no new partitions.
        rows = self._with_partitions(connection, rows).drop_nulls("partition_id")
        rows = rows.with_columns(id=_ids(connection, rows.height))
        # JSON and ids never contain \x01.
        columns = {
            "id": " ",
            "partition_id": " ",
            "queue_id": " ",
            "transaction_id": "\x01",
            "payload": "\x01",
        }
        found = (
            rows.sort("part", "partition_id", "transaction_id")
            .group_by("part")
            .agg(
                pl.col("queue_id").unique().alias("queues"),
                *(
                    pl.col(name).cast(pl.String).str.join(separator, ignore_nulls=False).alias(f"{name}s")
                    for name, separator in columns.items()
                ),
                pl.col("headers").cast(pl.String).fill_null("").str.join("\x01"),
            )
        )
        empty = {name: [] if name == "queues" else "" for name in found.columns}
        by_part = {row["part"]: row for row in found.iter_rows(named=True)}
        return [by_part.get(n, empty) for n in range(len(parts))]

    def _positioned(self, connection: Connection, frame: pl.DataFrame) -> pl.DataFrame:
        """Add positions, partitions and time."""
        txid, created_at = connection.execute(query("begin_windows")).fetchone() or (0, "")
        return self._with_partitions(connection, frame).with_columns(
            id=_ids(connection, frame.height),
            txid=pl.lit(txid, dtype=pl.Int64),
            created_at=pl.lit(created_at),
        )

    def _with_partitions(self, connection: Connection, frame: pl.DataFrame) -> pl.DataFrame:
        on = ["queue_id", "name"]
        name = "partition" if "partition" in frame.columns else "key"
        frame = frame.with_columns(name=pl.col(name))
        missing = frame.select(on).unique().join(self._known, on=on, how="anti").sort(on)
        if not missing.is_empty():
            params = {"queue_ids": missing["queue_id"].to_list(), "names": missing["name"].to_list()}
            found = connection.execute(query("find_partitions"), params).fetchall()
            if len(found) < missing.height:
                connection.execute(query("ensure_partitions"), params)
                found = connection.execute(query("find_partitions"), params).fetchall()
            if self._known.height > _MOST_KEYS:
                self._known = self._known.join(frame, on=on, how="semi")
            self._known = pl.concat([self._known, pl.DataFrame(found, schema=_KNOWN, orient="row")])
        return frame.join(self._known, on=on, how="left", maintain_order="left")


def _held(connection: Connection, frame: pl.DataFrame) -> tuple[pl.DataFrame, set[str]]:
    """Keep the rows of existing queues, and lock these against deletion until the transaction ends."""
    if frame.is_empty():
        return frame, set()
    ids = frame["queue_id"].unique().to_list()
    found = connection.execute(query("hold_window_queues"), {"ids": ids}).fetchall()
    queues = {int(queue_id): str(name) for queue_id, name in found}
    return frame.filter(pl.col("queue_id").is_in(list(queues))).cast({"queue_id": pl.Int64}), set(
        queues.values()
    )


def _ids(connection: Connection, count: int) -> pl.Series:
    """Allocate new ids, ascending."""
    blocks = connection.execute(query("take_blocks"), {"count": -(-count // BLOCK)}).fetchall()
    numbers = pl.Series([row[0] for row in blocks], dtype=pl.Int64).sort()
    ids = pl.DataFrame({"first": numbers * BLOCK}).select(
        pl.int_ranges(pl.col("first"), pl.col("first") + BLOCK).explode()
    )
    return ids.to_series().head(count)


def _messages(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert windows to log rows, in one global insertion order: no two sinks can deadlock."""
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
    """Drop rows with an id that the log already has. Their doubles may differ in the last digit."""
    params = {
        "partition_ids": messages["partition_id"].to_list(),
        "transaction_ids": messages["transaction_id"].to_list(),
    }
    found = connection.execute(query("same_rows"), params).fetchall()
    known = pl.DataFrame(found, schema={"n": pl.Int64}, orient="row")
    numbered = messages.with_row_index("n", offset=1).cast({"n": pl.Int64})
    return numbered.join(known, on="n", how="anti", maintain_order="left").drop("n")


def _revised(connection: Connection, rows: pl.DataFrame) -> pl.DataFrame:
    """Drop windows that the log already has; others with a known id become its next revision.

    The former happens when the pipeline rebuilds its state from the log, the latter when a key was expired
    from the state and came back.
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
