"""Moves a stream's state when its spec has changed or the stream is gone.

The tables of the state are shared by all streams of a spec. A stream with a changed spec in the same version
(its grace, say) takes its rows along; the rows of a deleted stream are removed.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from .clock import clock_of
from .directory import STREAM_BITS, stream_of
from .empty import following
from .state import State, Tables
from .summary import parsed

Stream = tuple[int, int]  # id and version


def settled(state: State, homes: Mapping[Stream, str]) -> State:
    """Move each stream to its current spec (as JSON)."""
    if state.settled_for is homes:
        return state
    wrong = {}
    for text in state.tables:
        numbers = state.summary(text).numbers
        away = [(g, *stream) for g, stream in numbers.items() if homes.get(stream) != text]
        if away or not numbers:
            wrong[text] = away
    if not wrong:
        state.settled_for = homes
        return state
    tables: Tables = {text: dict(of_spec) for text, of_spec in state.tables.items()}
    touched = set(wrong)
    for text, away in wrong.items():
        for g, stream, version in away:
            home = homes.get((stream, version))
            taken = {name: table.filter(_of(table, g)) for name, table in tables[text].items()}
            tables[text] = {name: table.filter(~_of(table, g)) for name, table in tables[text].items()}
            if home is not None:
                touched.add(home)
                tables[home] = _joined(tables.get(home, {}), _adapted(taken, text, home), g)
    left = {text: of_spec for text, of_spec in tables.items() if not of_spec["streams"].is_empty()}
    return State(
        {text: state.tables[text] if text not in touched else left[text] for text in left},
        {text: state.summary(text) for text in left if text not in touched},
    )


def _of(table: pl.DataFrame, g: int) -> pl.Expr:
    """Whether a row belongs to the stream of this number."""
    return (pl.col("g") if "g" in table.columns else stream_of(pl.col("k"))) == g


def _adapted(tables: dict[str, pl.DataFrame], text: str, home: str) -> dict[str, pl.DataFrame]:
    """Carry over the facts about windows of the old spec of a stream that the new one needs."""
    old, new = parsed(text), parsed(home)
    if not old.duration:
        return tables
    found = dict(tables)
    marks = clock_of(old, tables["clock"]).marks()
    if new.remembers and not old.remembers:
        # Windows that were sealed up to now were not kept, so they cannot be revised.
        found["unkept"] = marks.rename({"closed": "upto"})
    if new.emit_empty and not old.emit_empty and "open" in tables:
        found["empty"] = following(tables["open"], marks)
    return found


def _joined(home: dict[str, pl.DataFrame], taken: dict[str, pl.DataFrame], g: int) -> dict[str, pl.DataFrame]:
    """Merge the tables of a newcomer into those of a spec, renumbering its stream and keys."""
    new_g = _above(home, "streams", pl.col("g"))
    shift = (new_g - g) * STREAM_BITS + _above(home, "keys", pl.col("k") % STREAM_BITS)
    joined = dict(home)
    for name, rows in taken.items():
        numbers = {"g": pl.lit(new_g, dtype=pl.Int64), "k": pl.col("k") + shift}
        table = rows.with_columns(**{column: numbers[column] for column in numbers if column in rows.columns})
        joined[name] = pl.concat([home[name], table], how="diagonal_relaxed") if name in home else table
    return joined


def _above(home: dict[str, pl.DataFrame], name: str, number: pl.Expr) -> int:
    """A number above all of a table."""
    if name not in home or home[name].is_empty():
        return 0
    return int(home[name].select(number.max()).item()) + 1
