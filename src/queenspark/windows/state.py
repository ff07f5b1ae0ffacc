"""The engine's state: a few columnar tables for each spec, and their form as bytes."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import msgspec
import polars as pl

from .errors import StateError
from .summary import Summary

VERSION = 2
_LARGE = 1_000  # rows; a smaller table is written whole
_MOST_CHUNKS = 8

Tables = dict[str, dict[str, pl.DataFrame]]  # by spec as JSON, and name


class _Header(msgspec.Struct, omit_defaults=True):
    version: int
    #: Whole tables: spec as JSON, table, bytes.
    tables: list[tuple[str, str, int]]
    #: Spec, table, bytes of the numbers of rows that are gone, bytes of rows that came.
    changed: list[tuple[str, str, int, int]] = []
    #: Spec, table.
    gone: list[tuple[str, str]] = []


class State:
    """Tables by spec (as JSON) and name; never changed in place, so a state can be kept and gone back to."""

    def __init__(self, tables: Tables | None = None, summaries: dict[str, Summary] | None = None) -> None:
        self.tables = tables or {}
        self._summaries = summaries or {}

    def summary(self, spec: str) -> Summary:
        """What there is to know about the tables of a spec (as JSON)."""
        if spec not in self._summaries:
            self._summaries[spec] = Summary(spec, self.tables.get(spec, {}))
        return self._summaries[spec]

    def summaries(self) -> list[Summary]:
        """Those of all specs."""
        return [self.summary(spec) for spec in self.tables]

    def known(self, tables: Tables) -> dict[str, Summary]:
        """The summaries that hold for other tables too, because they are the same."""
        return {
            spec: summary
            for spec, summary in self._summaries.items()
            if tables.get(spec) is self.tables.get(spec)
        }

    def to_bytes(self) -> bytes:
        """Compact, versioned bytes: a header, then each table as Arrow IPC."""
        return self.since(State()) or b""

    @classmethod
    def from_bytes(cls, *parts: bytes) -> State:
        """The state again, from its bytes and what changed since; older layouts are brought up to date."""
        return cls().after(*parts)

    def since(self, before: State) -> bytes | None:
        """What is different from an earlier state: of a large table only the rows. None when nothing is."""
        header = _Header(VERSION, [])
        whole: list[bytes] = []
        changed: list[bytes] = []
        for spec, tables in self.tables.items():
            for name, table in tables.items():
                old = before.tables.get(spec, {}).get(name)
                if old is not None and (old is table or _same(old, table)):
                    continue
                change = _change(old, table) if old is not None and table.height >= _LARGE else None
                if change is None:
                    whole.append(_as_bytes(table))
                    header.tables.append((spec, name, len(whole[-1])))
                else:
                    gone, new = map(_as_bytes, change)
                    changed += [gone, new]
                    header.changed.append((spec, name, len(gone), len(new)))
        header.gone = [
            (spec, name)
            for spec, tables in before.tables.items()
            for name in tables
            if name not in self.tables.get(spec, {})
        ]
        if before.tables and not (header.tables or header.changed or header.gone):
            return None
        head = msgspec.json.encode(header)
        return b"".join([struct.pack("<I", len(head)), head, *whole, *changed])

    def after(self, *parts: bytes) -> State:
        """The state that comes of this one with these changes, in turn. All of them have the same layout."""
        tables = {spec: dict(of_spec) for spec, of_spec in self.tables.items()}
        changed: set[str] = set()
        version = VERSION
        for part in parts:
            version = _apply(part, tables, changed)
        for older in range(version, VERSION):
            _UPGRADES[older](tables)
        known = {spec: summary for spec, summary in self._summaries.items() if spec not in changed}
        return State({spec: of_spec for spec, of_spec in tables.items() if of_spec}, known)

    def rechunked(self) -> State:
        """The same state, with tables that were put together from many pieces in one piece each."""
        tables = {
            spec: {
                name: table.rechunk() if table.n_chunks() > _MOST_CHUNKS else table
                for name, table in of_spec.items()
            }
            for spec, of_spec in self.tables.items()
        }
        return State(tables, self._summaries)

    def size(self) -> int:
        """Bytes in memory."""
        return sum(summary.size for summary in self.summaries())


def _apply(part: bytes, tables: Tables, touched: set[str]) -> int:
    """Make tables what a part of a state says, and note their specs; the version of its layout."""
    try:
        (size,) = struct.unpack_from("<I", part)
        header = msgspec.json.decode(part[4 : 4 + size], type=_Header)
    except (struct.error, msgspec.MsgspecError) as error:
        raise StateError("not a state of the window engine") from error
    if header.version > VERSION:
        raise StateError(f"the state has layout {header.version}; this version knows up to {VERSION}")
    at = 4 + size
    entries: list[tuple[Any, ...]] = [*header.tables, *header.changed, *header.gone]
    touched.update(entry[0] for entry in entries)

    def take(length: int) -> pl.DataFrame:
        nonlocal at
        at += length
        return pl.read_ipc(io.BytesIO(part[at - length : at]))

    for spec, name, length in header.tables:
        tables.setdefault(spec, {})[name] = take(length)
    for spec, name, gone, new in header.changed:
        rows, tail = take(gone), take(new)
        tables[spec][name] = pl.concat([_without(tables[spec][name], rows["row"]), tail])
    for spec, name in header.gone:
        del tables[spec][name]
    return header.version


def _as_bytes(table: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    table.write_ipc(file, compression="lz4")
    return file.getvalue()


def _same(old: pl.DataFrame, new: pl.DataFrame) -> bool:
    return old.schema == new.schema and old.equals(new)


def _change(old: pl.DataFrame, new: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """The numbers of the rows that are gone, and the rows that came at the end; None when it is not so."""
    if old.schema != new.schema:
        return None
    rows = pl.Series("row", [], pl.UInt32)
    if not (new.height >= old.height and new.head(old.height).equals(old)):
        is_kept = old.hash_rows().is_in(new.hash_rows().implode())
        kept = old.filter(is_kept)
        if not new.head(kept.height).equals(kept):
            return None
        rows = (~is_kept).arg_true().cast(pl.UInt32).alias("row")
    return rows.to_frame(), new.slice(old.height - rows.len())


def _without(table: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    if rows.is_empty():
        return table
    return table.filter(~pl.int_range(table.height, dtype=pl.UInt32, eager=True).is_in(rows.implode()))


def _narrow_buffers(tables: Tables) -> None:
    """Layout 1 kept columns of rows buffers that follow from others."""
    for of_spec in tables.values():
        if "buffer" in of_spec:
            unneeded = ("created", "count", "first", "last")
            of_spec["buffer"] = of_spec["buffer"].drop(unneeded).sort("k", maintain_order=True)


#: What brings the tables of a layout to the next one.
_UPGRADES: dict[int, Callable[[Tables], None]] = {1: _narrow_buffers}
