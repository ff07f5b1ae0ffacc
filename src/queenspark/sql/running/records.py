"""The first stage: filters messages, and computes the engine's input or, without state, the rows."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import polars as pl

from ..duration import short_duration
from ..expressions import Compiled
from ..keys import key_text
from ..planning.plan import Plan
from .rows import DEAD, ROW, RowStage, alive, without
from .slots import slots_of

_MAX_AHEAD = "1d"


class Taken(NamedTuple):
    """The output of the stage."""

    #: For the engine: key, queue_id, txid, id, created_us, event_us, slots, and the columns for rows of OVER.
    records: pl.DataFrame
    #: Of a plan without state.
    rows: pl.DataFrame
    dead: pl.DataFrame


class RecordStage:
    """The first stage of one plan, for a version of a job."""

    def __init__(self, plan: Plan, job: int, version: int, *, as_columns: bool = False) -> None:
        self._plan = plan
        self._job = job
        self._slots = slots_of(plan)
        self._rows = RowStage(plan, job, version, as_columns=as_columns) if plan.kind == "stateless" else None
        self._has_time = plan.window is not None and plan.window.clock == "event"
        self._ahead = plan.options.get("max_ahead", _MAX_AHEAD)

    def run(self, messages: pl.DataFrame) -> Taken:
        """Process messages of the relation, with the columns of its decoder."""
        dead: list[pl.DataFrame] = []
        records = self._plan.records
        frame = records.condition_program.apply(messages)
        if records.condition is not None:
            frame = alive(frame, [records.condition], dead).filter(records.condition.value)
        frame = alive(records.program.apply(frame), self._needed, dead)
        if self._rows is not None:
            given = self._rows.of_records(frame)
            return Taken(_EMPTY, given.rows, pl.concat([*dead, given.dead]))
        frame = self._timed(frame, dead)
        return Taken(frame.select(self._selected), _NO_ROWS, pl.concat([pl.DataFrame(schema=DEAD), *dead]))

    @cached_property
    def _needed(self) -> list[Compiled]:
        """The expressions that each record requires."""
        records = self._plan.records
        time = [] if records.time is None else [records.time]
        inputs = [self._where_used(name, value) for name, value in records.inputs]
        return [*(value for _, value in records.key), *inputs, *time]

    def _where_used(self, name: str, value: Compiled) -> Compiled:
        """An input of aggregates, which fails only in records that pass the FILTER of one of them."""
        filters = {each.where for each in self._plan.aggregates if name in each.inputs}
        is_filter = any(each.where == name for each in self._plan.aggregates)
        if value.error is None or is_filter or not filters or None in filters:
            return value
        inputs = dict(self._plan.records.inputs)
        passes = [inputs[each].value.fill_null(False) for each in sorted(filter(None, filters))]
        return value.failing(pl.when(pl.any_horizontal(passes)).then(value.error))

    @cached_property
    def _selected(self) -> list[pl.Expr]:
        """The engine's input columns."""
        records = self._plan.records
        inputs = dict(records.inputs)
        slots = self._slots.inputs if self._slots is not None else {}
        key = key_text([(value.value, value.type) for _, value in records.key])
        return [
            key.alias("key"),
            *map(pl.col, ("queue_id", "txid", "id", "created_us", "event_us")),
            *(inputs[name].value.alias(slot) for slot, name in slots.items()),
            *map(pl.col, self.later_columns),
        ]

    @property
    def later_columns(self) -> list[str]:
        """Message columns that the rows of OVER need in addition to its aggregates."""
        plan = self._plan
        if plan.kind != "rows":
            return []
        fields = [name for field in plan.records.fields for name in (field.column, field.error)]
        return [*fields, *plan.records.pseudo]

    def _timed(self, frame: pl.DataFrame, dead: list[pl.DataFrame]) -> pl.DataFrame:
        """Add `event_us` to records; those without a time or too far ahead of their push are dead.

        Records of sources that do not know when they were pushed have `read_us`, a wall clock: their
        `created_us` is a clock that stands still while nothing is read.
        """
        if not self._has_time:
            return frame.with_columns(event_us=pl.lit(None, dtype=pl.Int64))
        time = self._plan.records.time
        value = pl.col("_event_time") if time is None else time.value
        frame = frame.with_columns(event_us=value.dt.epoch("us"))
        pushed = pl.col("read_us" if "read_us" in frame.columns else "created_us")
        most = pushed + (short_duration(self._ahead) or 0)
        reason = (
            pl.when(pl.col("event_us").is_null())
            .then(pl.lit("the event time is NULL"))
            .when(pl.col("event_us") > most)
            .then(pl.lit(f"the event time is more than {self._ahead} after the push (max_ahead)"))
        )
        return without(frame, reason, dead)


_EMPTY = pl.DataFrame()
_NO_ROWS = pl.DataFrame(schema=ROW)
