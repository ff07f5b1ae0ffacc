"""The last stage: rows as messages, out of records or of what the window engine gives."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import polars as pl

from ..encoding import json_text, row_text
from ..expressions import Compiled
from ..expressions.times import from_micros
from ..keys import key_values, partition_name, shortened
from ..planning.plan import EXPLODED, Plan
from ..planning.scope import REVISION
from ..types import STRING, TIMESTAMP
from .slots import slots_of

#: Of records that could not be read, and of rows that could not be computed.
DEAD = {
    "key": pl.String, "txid": pl.Int64, "id": pl.Int64, "start_us": pl.Int64, "end_us": pl.Int64,
    "reason": pl.String,
}  # fmt: skip
#: Rows as messages of the partition `key`, to be sorted by the others: by time, by record, by id.
ROW = {
    "order": pl.Int64, "txid": pl.Int64, "id": pl.Int64, "transaction_id": pl.String, "key": pl.String,
    "payload": pl.String, "headers": pl.String,
}  # fmt: skip
_LONGEST_ID = 512
_REASON = "!reason"
_NUMBER = "!number"


class Given(NamedTuple):
    """Rows, in no particular order, and those that could not be computed."""

    rows: pl.DataFrame
    dead: pl.DataFrame


class RowStage:
    """The last stage of one plan, for a version of a job."""

    def __init__(self, plan: Plan, job: int, version: int) -> None:
        self._plan = plan
        self._id = f"{job}:{version}"
        self._version = version
        self._slots = slots_of(plan)

    def of_records(self, frame: pl.DataFrame) -> Given:
        """Rows of a plan without state: those of records, with the columns of the first stage."""
        rows = self._plan.rows
        frame = rows.program.apply(frame)
        dead: list[pl.DataFrame] = []
        if rows.explode is not None:
            frame = self._exploded(frame, rows.explode, dead)
        frame = alive(frame, [column.value for column in rows.columns], dead)
        record = pl.format(f"{self._id}:{{}}-{{}}", "txid", "id")
        if rows.explode is not None:
            record = pl.format("{}:{}", record, pl.col(_NUMBER))
        time = pl.col("_event_time") if "_event_time" in frame.columns else from_micros(pl.col("created_us"))
        revision = pl.col(REVISION) if REVISION in frame.columns else None
        payload = pl.col("payload") if rows.whole_payload else self._payload()
        found = frame.select(
            self._partition().alias("key"),
            payload.alias("payload"),
            self._headers(time, revision, None).alias("headers"),
            record.alias("transaction_id"),
            pl.lit(0, dtype=pl.Int64).alias("order"),
            "txid",
            "id",
        )
        return Given(found.select(list(ROW)), _concat(dead))

    def of_windows(self, frame: pl.DataFrame) -> Given:
        """Rows of windows and groups, as the engine gives them; its own columns stay beside."""
        plan = self._plan
        columns = [
            values.alias(name)
            for (name, _), values in zip(
                plan.records.key,
                key_values(frame["key"], [kind.type for _, kind in plan.records.key])
                if plan.records.key
                else (),
                strict=True,
            )
        ]
        frame = frame.with_columns(
            *columns,
            *self._results(frame),
            shortened(pl.col("key")).alias("key"),
            from_micros(pl.col("start_us")).alias("window_start"),
            from_micros(pl.col("end_us")).alias("window_end"),
            pl.col("count").alias("_count"),
            pl.col("revision").alias(REVISION),
        )
        return self._finished(frame, by_record=plan.emission == "changes")

    def of_buffers(self, frame: pl.DataFrame) -> Given:
        """Rows of OVER: what the engine gives for each record, joined with the record's own columns."""
        frame = frame.with_columns(*self._results(frame), shortened(pl.col("key")).alias("key"))
        return self._finished(frame, by_record=True)

    def _finished(self, frame: pl.DataFrame, *, by_record: bool) -> Given:
        rows = self._plan.rows
        frame = rows.program.apply(frame)
        dead: list[pl.DataFrame] = []
        if rows.having is not None:
            frame = alive(frame, [rows.having], dead)
            frame = frame.filter(rows.having.value)
        frame = alive(frame, [column.value for column in rows.columns], dead)
        if by_record:
            record = pl.format("{}-{}", "txid", "id")
            in_window = self._plan.kind == "window"
            ids = (
                pl.format("{}:{}", short_id("window_id"), record)
                if in_window
                else (pl.format(f"{self._id}:{{}}", record))
            )
            time, order = pl.col("time_us"), pl.lit(0, dtype=pl.Int64)
        else:
            ids = pl.format("{}:r{}", short_id("window_id"), "revision")
            time, order = pl.col("end_us") - 1, pl.col("end_us")
            frame = frame.with_columns(txid=pl.lit(0, dtype=pl.Int64), id=pl.lit(0, dtype=pl.Int64))
        revision = pl.col("revision") if self._plan.updating else None
        replaces = pl.col("replaces") if self._plan.kind == "window" and not by_record else None
        found = frame.with_columns(
            self._payload().alias("payload"),
            self._headers(from_micros(time), revision, replaces).alias("headers"),
            ids.alias("transaction_id"),
            order.alias("order"),
        )
        return Given(found, _concat(dead))

    def _results(self, frame: pl.DataFrame) -> list[pl.Expr]:
        """The columns of the aggregates by their names, with their errors."""
        found = []
        slots = self._slots.results if self._slots is not None else {}
        by_name = {aggregate.name: aggregate for aggregate in self._plan.aggregates}
        for slot, name in slots.items():
            aggregate = by_name[name]
            found.append(pl.col(slot).cast(aggregate.type.column).alias(name))
            if aggregate.can_fail:
                error = pl.col(f"{slot}!") if f"{slot}!" in frame.columns else pl.lit(None, dtype=pl.String)
                found.append(error.alias(aggregate.error))
        return found

    def _exploded(self, frame: pl.DataFrame, array: Compiled, dead: list[pl.DataFrame]) -> pl.DataFrame:
        """A row for each element; none for NULL and for an empty array."""
        frame = alive(frame, [array], dead).with_columns(array.value.alias(EXPLODED))
        frame = frame.filter(pl.col(EXPLODED).list.len() > 0)
        numbers = pl.int_ranges(0, pl.col(EXPLODED).list.len())
        return frame.with_columns(numbers.alias(_NUMBER)).explode(EXPLODED, _NUMBER)

    def _partition(self) -> pl.Expr:
        """The partition of rows without state: that of the message, unless the job says otherwise."""
        wanted = self._plan.options.get("partition_by")
        if wanted is None:
            return pl.col("partition")
        columns = {column.name.lower(): column for column in self._plan.rows.columns}
        found = [columns[name.strip().lower()] for name in wanted.split(",")]
        return partition_name([(column.value.value, column.type) for column in found])

    def _payload(self) -> pl.Expr:
        return row_text(
            {column.name: (column.value.value, column.type) for column in self._plan.rows.columns}
        )

    def _headers(self, time: pl.Expr, revision: pl.Expr | None, replaces: pl.Expr | None) -> pl.Expr:
        """What is told beside a row, as a JSON object of strings."""
        parts: list[pl.Expr] = [pl.lit(f'{{"_version":"{self._version}","_event_time":')]
        parts.append(json_text(time, TIMESTAMP))
        if revision is not None:
            parts += [pl.lit(',"_revision":"'), revision.cast(pl.String).fill_null("1"), pl.lit('"')]
        if replaces is not None:
            ids = replaces.list.eval(json_text(short_id(pl.element()), STRING)).list.join(",")
            text = json_text(pl.concat_str([pl.lit("["), ids, pl.lit("]")]), STRING)
            named = pl.concat_str([pl.lit(',"_replaces":'), text])
            parts.append(pl.when(replaces.list.len() > 0).then(named).otherwise(pl.lit("")))
        return pl.concat_str([*parts, pl.lit("}")])


def alive(frame: pl.DataFrame, needed: list[Compiled], dead: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of which everything that is needed can be computed; the others are added to the dead."""
    errors = [each.error for each in needed if each.error is not None]
    return frame if not errors else without(frame, pl.coalesce(errors), dead)


def without(frame: pl.DataFrame, reason: pl.Expr, dead: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows that have no reason to be dead; the others are added to the dead."""
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


def short_id(window_id: str | pl.Expr) -> pl.Expr:
    """A window's id; a hash of it when its key is very long."""
    text = pl.col(window_id) if isinstance(window_id, str) else window_id
    long = text.str.len_chars() > _LONGEST_ID
    hashed = pl.when(long).then(text).map_batches(_hashed, return_dtype=pl.String(), is_elementwise=True)
    return pl.when(long).then(hashed).otherwise(text)


def _hashed(ids: pl.Series) -> pl.Series:
    found = [None if each is None else sha256(each.encode()).hexdigest() for each in ids.to_list()]
    return pl.Series(ids.name, found, dtype=pl.String)


def _concat(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=DEAD), *frames])
