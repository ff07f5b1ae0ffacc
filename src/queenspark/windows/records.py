"""The records of a batch, by the spec that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from .errors import InputError
from .moves import Stream

#: Columns that records have for every spec.
COLUMNS: dict[str, pl.DataType] = {
    "stream": pl.Int64(), "version": pl.Int32(), "key": pl.String(), "source": pl.Int32(), "txid": pl.Int64(),
    "id": pl.Int64(), "created_us": pl.Int64(), "event_us": pl.Int64(),
}  # fmt: skip


def by_group(frames: Sequence[pl.DataFrame], homes: Mapping[Stream, str]) -> dict[str, list[pl.DataFrame]]:
    """The records by the group (a spec as JSON) of their stream, without those of other streams."""
    found: dict[str, list[pl.DataFrame]] = {}
    for frame in frames:
        if frame.is_empty():
            continue
        streams = frame.select("stream", "version").unique().rows()
        groups = {homes.get(stream) for stream in streams}
        if len(groups) == 1:
            parts = {groups.pop(): frame}
        else:
            numbers = [(*stream, home) for stream in streams if (home := homes.get(stream)) is not None]
            schema = {"stream": frame.schema["stream"], "version": frame.schema["version"], "home": pl.String}
            table = pl.DataFrame(numbers, schema=schema, orient="row")
            joined = frame.join(table, on=["stream", "version"], how="inner", maintain_order="left")
            divided = joined.partition_by("home", as_dict=True, include_key=False)
            parts = {str(home): part for (home,), part in divided.items()}
        for group, part in parts.items():
            if group is not None:
                found.setdefault(group, []).append(part)
    return found


def records_of(frames: Sequence[pl.DataFrame], inputs: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The columns of records that a spec reads. Raises InputError where they are not of its types."""
    if not frames:
        return pl.DataFrame(schema=pl.Schema(COLUMNS | dict(inputs)))
    return pl.concat([_typed(frame, inputs) for frame in frames])


def _typed(frame: pl.DataFrame, inputs: Mapping[str, pl.DataType]) -> pl.DataFrame:
    columns: list[pl.Expr] = []
    for name, kind in inputs.items():
        found = frame.schema.get(name)
        if found is None:
            raise InputError(f"the records have no column {name!r}, which the spec reads")
        if found != kind and found != pl.Null():
            raise InputError(f"the column {name!r} of the records is {found}; the spec says {kind}")
        columns.append(pl.col(name) if found == kind else pl.col(name).cast(kind))
    return frame.select(*COLUMNS, *columns)
