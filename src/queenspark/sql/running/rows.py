"""The last stage: rows as messages, from records or engine output."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import polars as pl

from ..encoding import json_text, row_text
from ..expressions import Compiled
from ..expressions.times import from_micros
from ..keys import LONGEST, key_values, partition_name, shortened
from ..planning.plan import EXPLODED, Plan
from ..planning.scope import REVISION
from ..types import STRING, TIMESTAMP
from .slots import slots_of

#: Unreadable records, and rows that could not be computed.
DEAD = {
    "key": pl.String, "txid": pl.Int64, "id": pl.Int64, "start_us": pl.Int64, "end_us": pl.Int64,
    "reason": pl.String,
}  # fmt: skip
#: Rows as messages of the partition `key`, to be sorted by the others: by time, by record, by id.
ROW = {
    "order": pl.Int64, "txid": pl.Int64, "id": pl.Int64, "transaction_id": pl.String, "key": pl.String,
    "payload": pl.String, "headers": pl.String,
}  # fmt: skip
#: Longest id of a window. The id of a row adds a revision, or the position of a record, and has up to 512.
_LONGEST_ID = 460
_REASON = "!reason"
_NUMBER = "!number"


class Given(NamedTuple):
    """Rows in no particular order, and those that could not be computed."""

    rows: pl.DataFrame
    dead: pl.DataFrame


class RowStage:
    """The last stage of one plan, for a version of a job. Reused for many batches."""

    def __init__(self, plan: Plan, job: int, version: int, *, as_columns: bool = False) -> None:
        """Prepare; with `as_columns`, payloads are structs instead of JSON, without ids and headers."""
        self._as_columns = as_columns
        self._plan = plan
        self._id = f"{job}:{version}"
        self._version = version
        self._values = [column.value for column in plan.rows.columns]
        self._key_types = [kind.type for _, kind in plan.records.key]
        slots = slots_of(plan)
        by_name = {aggregate.name: aggregate for aggregate in plan.aggregates}
        results = {} if slots is None else {slot: by_name[name] for slot, name in slots.results.items()}
        self._results = [
            pl.col(slot).cast(aggregate.type.column).alias(aggregate.name)
            for slot, aggregate in results.items()
        ]
        self._errors = {f"{slot}!": each.error for slot, each in results.items() if each.can_fail}
        # A Kafka record is identified by its offset: its txid may depend on when it was read.
        self._position = ["id"] if plan.relation.kind == "kafka" else ["txid", "id"]
        self._by_record = plan.kind != "window" or plan.emission == "changes"
        #: Rows of groups, emitted at the end of the source.
        self._at_end = plan.kind == "unwindowed" and plan.emission == "final"

    def of_records(self, frame: pl.DataFrame) -> Given:
        """Compute rows of a plan without state, from records with the columns of the first stage."""
        rows = self._plan.rows
        frame = rows.program.apply(frame)
        dead: list[pl.DataFrame] = []
        if rows.explode is not None:
            frame = self._exploded(frame, rows.explode, dead)
        frame = alive(frame, self._values, dead)
        time = pl.col("_event_time") if "_event_time" in frame.columns else from_micros(pl.col("created_us"))
        revision = pl.col(REVISION) if REVISION in frame.columns else None
        headers = pl.lit("") if self._as_columns else self._headers(time, revision, None)
        found = frame.select(*self._row_of_record, headers.alias("headers"))
        return Given(found.select(list(ROW)), _concat(dead))

    def of_windows(self, frame: pl.DataFrame) -> Given:
        """Compute rows of windows and groups from engine output; the engine's columns are kept."""
        keys: list[pl.Series] = []
        if self._key_types:
            values = key_values(frame["key"], self._key_types)
            keys = [
                value.alias(name) for (name, _), value in zip(self._plan.records.key, values, strict=True)
            ]
        return self._finished(frame.with_columns(*keys, *self._window_columns, *self._failures(frame)))

    def of_buffers(self, frame: pl.DataFrame) -> Given:
        """Compute rows of OVER: engine output for each record, joined with the record's columns."""
        return self._finished(frame.with_columns(*self._results, *self._failures(frame)))

    def _finished(self, frame: pl.DataFrame) -> Given:
        rows = self._plan.rows
        frame = _with_short_names(rows.program.apply(frame))
        dead: list[pl.DataFrame] = []
        if rows.having is not None:
            frame = alive(frame, [rows.having], dead).filter(rows.having.value)
        frame = alive(frame, self._values, dead)
        return Given(frame.with_columns(self._row_of_window), _concat(dead))

    @cached_property
    def _row_of_record(self) -> list[pl.Expr]:
        record = pl.concat_str([pl.lit(self._id), self._record_text()], separator=":")
        if self._plan.rows.explode is not None:
            record = pl.format("{}:{}", record, pl.col(_NUMBER))
        payload = pl.col("payload") if self._plan.rows.whole_payload else self._payload()
        return [
            self._partition().alias("key"),
            payload.alias("payload"),
            record.alias("transaction_id"),
            pl.lit(0, dtype=pl.Int64).alias("order"),
            pl.col("txid"),
            pl.col("id"),
        ]

    @cached_property
    def _window_columns(self) -> list[pl.Expr]:
        return [
            *self._results,
            from_micros(pl.col("start_us")).alias("window_start"),
            from_micros(pl.col("end_us")).alias("window_end"),
            pl.col("count").alias("_count"),
            pl.col("revision").alias(REVISION),
        ]

    @cached_property
    def _row_of_window(self) -> list[pl.Expr]:
        plan = self._plan
        nowhere = [pl.lit(0, dtype=pl.Int64).alias(name) for name in ("order", "txid", "id")]
        if self._as_columns:
            nothing = [pl.lit("").alias(name) for name in ("headers", "transaction_id")]
            return [self._payload().alias("payload"), *nothing, *nowhere]
        revision = pl.col("revision") if plan.updating else None
        if self._at_end:
            ids = _short_id(pl.format(f"{self._id}:{{}}", "key"))
            named = {
                "payload": self._payload(),
                "headers": self._headers(None, None, None),
                "transaction_id": ids,
            }
            return [*(value.alias(name) for name, value in named.items()), *nowhere]
        if self._by_record:
            job = pl.col("window_id") if plan.kind == "window" else pl.lit(self._id)
            ids = pl.concat_str([job, self._record_text()], separator=":")
            headers = self._headers(from_micros(pl.col("time_us")), revision, None)
            position = [pl.lit(0, dtype=pl.Int64).alias("order")]
        else:
            ids = pl.format("{}:r{}", "window_id", "revision")
            headers = self._headers(from_micros(pl.col("end_us") - 1), revision, pl.col("replaces"))
            is_session = plan.window is not None and plan.window.kind == "session"
            # A session comes after the sessions that it replaces; revisions come in order.
            inner_first = -pl.col("start_us") if is_session else pl.lit(0, dtype=pl.Int64)
            revisions = pl.col("revision").cast(pl.Int64)
            position = [pl.col("end_us").alias("order"), inner_first.alias("txid"), revisions.alias("id")]
        return [
            self._payload().alias("payload"), headers.alias("headers"), ids.alias("transaction_id"),
            *position,
        ]  # fmt: skip

    def _record_text(self) -> pl.Expr:
        """The record part of a row id."""
        return pl.concat_str(self._position, separator="-")

    def _failures(self, frame: pl.DataFrame) -> list[pl.Expr]:
        """The errors of the aggregates by column name."""
        return [
            (pl.col(slot) if slot in frame.columns else pl.lit(None, dtype=pl.String)).alias(name)
            for slot, name in self._errors.items()
        ]

    def _exploded(self, frame: pl.DataFrame, array: Compiled, dead: list[pl.DataFrame]) -> pl.DataFrame:
        """One row per element; none for NULL and for an empty array."""
        frame = alive(frame, [array], dead).with_columns(array.value.alias(EXPLODED))
        frame = frame.filter(pl.col(EXPLODED).list.len() > 0)
        numbers = pl.int_ranges(0, pl.col(EXPLODED).list.len())
        return frame.with_columns(numbers.alias(_NUMBER)).explode(EXPLODED, _NUMBER)

    def _partition(self) -> pl.Expr:
        """The partition of rows without state: that of the message, unless the job sets another."""
        wanted = self._plan.options.get("partition_by")
        if wanted is None:
            return pl.col("partition")
        columns = {column.name.lower(): column for column in self._plan.rows.columns}
        found = [columns[name.strip().lower()] for name in wanted.split(",")]
        return partition_name([(column.value.value, column.type) for column in found])

    def _payload(self) -> pl.Expr:
        columns = self._plan.rows.columns
        if self._as_columns:
            return pl.struct(
                [column.value.value.cast(column.type.column).alias(column.name) for column in columns]
            )
        return row_text({column.name: (column.value.value, column.type) for column in columns})

    def _headers(self, time: pl.Expr | None, revision: pl.Expr | None, replaces: pl.Expr | None) -> pl.Expr:
        """The row's metadata, as a JSON object of strings."""
        parts: list[pl.Expr] = [pl.lit(f'{{"_version":"{self._version}"')]
        if time is not None:
            parts += [pl.lit(',"_event_time":'), json_text(time, TIMESTAMP)]
        if revision is not None:
            parts += [pl.lit(',"_revision":"'), revision.cast(pl.String).fill_null("1"), pl.lit('"')]
        if replaces is not None:
            ids = replaces.list.eval(json_text(pl.element(), STRING)).list.join(",")
            text = json_text(pl.concat_str([pl.lit("["), ids, pl.lit("]")]), STRING)
            named = pl.concat_str([pl.lit(',"_replaces":'), text])
            parts.append(pl.when(replaces.list.len() > 0).then(named).otherwise(pl.lit("")))
        return pl.concat_str([*parts, pl.lit("}")])


def _with_short_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Shorten keys and window ids to valid partition names and transaction ids."""
    longest = frame["key"].str.len_bytes().max()
    if not isinstance(longest, int) or longest <= LONGEST:
        return frame
    ids = [pl.col("window_id")] if "window_id" in frame.columns else []
    replaced = [pl.col("replaces").list.eval(_short_id(pl.element()))] if "replaces" in frame.columns else []
    return frame.with_columns(shortened(pl.col("key")), *map(_short_id, ids), *replaced)


def alive(frame: pl.DataFrame, needed: list[Compiled], dead: list[pl.DataFrame]) -> pl.DataFrame:
    """Keep the rows whose required expressions can be computed; the others are added to the dead."""
    errors = [each.error for each in needed if each.error is not None]
    return frame if not errors else without(frame, pl.coalesce(errors), dead)


def without(frame: pl.DataFrame, reason: pl.Expr, dead: list[pl.DataFrame]) -> pl.DataFrame:
    """Keep the rows without a reason to be dead; the others are added to the dead."""
    reasons = frame.select(reason.alias(_REASON)).to_series()
    if reasons.null_count() == reasons.len():
        return frame
    nothing = pl.lit(None, dtype=pl.Int64)
    columns = frame.columns
    found = frame.filter(reasons.is_not_null()).select(
        (pl.col("key") if "key" in columns else shortened(pl.col("partition"))).alias("key"),
        *(
            (pl.col(name) if name in columns else pl.lit(0, dtype=pl.Int64)).alias(name)
            for name in ("txid", "id")
        ),
        *((pl.col(name) if name in columns else nothing).alias(name) for name in ("start_us", "end_us")),
    )
    dead.append(found.with_columns(reasons.drop_nulls().alias("reason")))
    return frame.filter(reasons.is_null())


def _short_id(window_id: pl.Expr) -> pl.Expr:
    """A window's id; a hash of it if its key is very long."""
    long = window_id.str.len_chars() > _LONGEST_ID
    only_long = pl.when(long).then(window_id)
    hashed = only_long.map_batches(_hashed, return_dtype=pl.String(), is_elementwise=True)
    return pl.when(long).then(hashed).otherwise(window_id)


def _hashed(ids: pl.Series) -> pl.Series:
    found = [None if each is None else sha256(each.encode()).hexdigest() for each in ids.to_list()]
    return pl.Series(ids.name, found, dtype=pl.String)


def _concat(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=DEAD), *frames])
