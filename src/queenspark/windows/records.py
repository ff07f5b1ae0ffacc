"""The records of a batch, by spec."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from .errors import InputError
from .moves import Stream
from .record_columns import COLUMNS

_HOMES = {"stream": pl.Int64, "version": pl.Int32, "home": pl.String}


def by_group(
    frames: Sequence[pl.DataFrame], streams: Collection[Stream], homes: Mapping[Stream, str]
) -> dict[str, list[pl.DataFrame]]:
    """Split the records of some streams by group (a spec as JSON), the stream's home."""
    found: dict[str, list[pl.DataFrame]] = {}
    for frame in frames:
        if frame.is_empty():
            continue
        home_of = {
            stream: homes.get(stream) if stream in streams else None
            for stream in frame.select("stream", "version").unique().rows()
        }
        groups = set(home_of.values())
        if len(groups) == 1:
            parts = {groups.pop(): frame}
        else:
            numbers = [(*stream, home) for stream, home in home_of.items() if home is not None]
            table = pl.DataFrame(numbers, schema=_HOMES, orient="row")
            joined = frame.join(table, on=["stream", "version"], how="inner", maintain_order="left")
            divided = joined.partition_by("home", as_dict=True, include_key=False)
            parts = {str(home): part for (home,), part in divided.items()}
        for group, part in parts.items():
            if group is not None:
                found.setdefault(group, []).append(part)
    return found


def records_of(
    frames: Sequence[pl.DataFrame], inputs: Mapping[str, pl.DataType], g: int | None
) -> pl.DataFrame:
    """Select the columns that a spec reads, plus the stream's number if all are of one stream.

    Raises InputError if they do not have the spec's types.
    """
    number = [] if g is None else [pl.lit(g, dtype=pl.Int64).alias("g")]
    if not frames:
        schema: dict[str, pl.DataType] = dict(COLUMNS)
        schema.update(inputs)
        return pl.DataFrame(schema=schema if g is None else schema | {"g": pl.Int64()})
    typed = [_typed(frame, inputs, number) for frame in frames]
    return typed[0] if len(typed) == 1 else pl.concat(typed)


def _typed(frame: pl.DataFrame, inputs: Mapping[str, pl.DataType], more: list[pl.Expr]) -> pl.DataFrame:
    columns = list(more)
    for name, kind in inputs.items():
        found = frame.schema.get(name)
        if found is None:
            raise InputError(f"the records have no column {name!r}, which the spec reads")
        if found != kind and found != pl.Null():
            raise InputError(f"the column {name!r} of the records is {found}; the spec says {kind}")
        columns.append(pl.col(name) if found == kind else pl.col(name).cast(kind))
    return frame.select(*COLUMNS, *columns)
