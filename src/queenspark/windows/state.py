"""The engine's state: a few columnar tables per spec, and their serialisation."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import polars as pl

from .errors import StateError
from .summary import NEVER, Summary

VERSION = 2
_LARGE = 1_000  # rows; a smaller table is written whole
_MOST_CHUNKS = 8

Tables = dict[str, dict[str, pl.DataFrame]]  # by spec as JSON, and name


class _Header(msgspec.Struct, omit_defaults=True):
    version: int
    #: Whole tables: spec as JSON, table, bytes.
    tables: list[tuple[str, str, int]]
    #: Spec, table, bytes of the removed row numbers, bytes of the added rows.
    changed: list[tuple[str, str, int, int]] = []
    #: Spec, table.
    gone: list[tuple[str, str]] = []


class State:
    """Tables by spec (as JSON) and name; immutable, so a state can be kept for rollback."""

    def __init__(self, tables: Tables | None = None, summaries: dict[str, Summary] | None = None) -> None:
        self.tables = tables or {}
        self._summaries = summaries or {}
        #: The homes of streams that these tables are settled for, if they are (moves.py).
        self.settled_for: object = None
        self._overview: Overview | None = None

    def summary(self, spec: str) -> Summary:
        """The summary of the tables of a spec (as JSON)."""
        if spec not in self._summaries:
            self._summaries[spec] = Summary(spec, self.tables.get(spec, {}))
        return self._summaries[spec]

    def summaries(self) -> list[Summary]:
        """The summaries of all specs."""
        return [self.summary(spec) for spec in self.tables]

    def stepped(self, tables: Tables, touched: Iterable[str]) -> State:
        """Return the state with new tables, different only for the touched specs."""
        known = dict(self._summaries)
        for spec in touched:
            known.pop(spec, None)
        after = State(tables, known)
        after._overview = self.overview.after(after, touched)
        after.settled_for = self.settled_for
        return after

    @property
    def overview(self) -> Overview:
        """Facts about all specs."""
        if self._overview is None:
            self._overview = Overview.of(self)
        return self._overview

    def to_bytes(self) -> bytes:
        """Serialise to compact, versioned bytes: a header, then each table as Arrow IPC."""
        return self.since(State()) or b""

    @classmethod
    def from_bytes(cls, *parts: bytes) -> State:
        """Deserialise a state and later deltas; older layouts are upgraded."""
        return cls().after(*parts)

    def since(self, before: State) -> bytes | None:
        """Serialise the delta to an earlier state: of a large table only the rows. None if there is none."""
        header = _Header(VERSION, [])
        whole: list[bytes] = []
        changed: list[bytes] = []
        for spec, tables in self.tables.items():
            was = before.tables.get(spec, {})
            if was is tables:
                continue
            for name, table in tables.items():
                old = was.get(name)
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
            if (now := self.tables.get(spec, {})) is not tables
            for name in tables
            if name not in now
        ]
        if before.tables and not (header.tables or header.changed or header.gone):
            return None
        head = msgspec.json.encode(header)
        return b"".join([struct.pack("<I", len(head)), head, *whole, *changed])

    def after(self, *parts: bytes) -> State:
        """Apply deltas in order. All of them must have the same layout."""
        tables = {spec: dict(of_spec) for spec, of_spec in self.tables.items()}
        changed: set[str] = set()
        version = VERSION
        for part in parts:
            version = _apply(part, tables, changed)
        for older in range(version, VERSION):
            _UPGRADES[older](tables)
        known = {spec: summary for spec, summary in self._summaries.items() if spec not in changed}
        return State({spec: of_spec for spec, of_spec in tables.items() if of_spec}, known)

    def rechunked(self, before: State | None = None) -> State:
        """Return the same state with fragmented tables rechunked.

        Tables of an earlier state are left as they are.
        """
        known = before.tables if before is not None else {}
        tables = {
            spec: of_spec
            if known.get(spec) is of_spec
            else {
                name: table.rechunk() if table.n_chunks() > _MOST_CHUNKS else table
                for name, table in of_spec.items()
            }
            for spec, of_spec in self.tables.items()
        }
        state = State(tables, self._summaries)
        state.settled_for = self.settled_for
        state._overview = self._overview
        return state

    def later(self, microseconds: int) -> State:
        """Return the state as if the newest record of each key with an event clock had been created later."""
        tables = {
            spec: {
                name: table.with_columns(pl.col("l") + microseconds)
                if name == "clock" and "l" in table.columns
                else table
                for name, table in of_spec.items()
            }
            for spec, of_spec in self.tables.items()
        }
        state = State(tables)
        state.settled_for = self.settled_for
        return state

    def size(self) -> int:
        """Bytes in memory."""
        return self.overview.size


class Overview:
    """Facts about all specs of a state, updated incrementally by each step."""

    def __init__(self, due: dict[str, int], closes: dict[str, int], open_windows: int, size: int) -> None:
        self._due = due
        self._closes = closes
        #: Number of unsealed windows.
        self.open_windows = open_windows
        #: Bytes in memory.
        self.size = size
        self._counted: dict[str, tuple[int, int]] = {}

    @classmethod
    def of(cls, state: State) -> Overview:
        """Build the overview of a state from the summaries of all specs."""
        return cls({}, {}, 0, 0).after(state, state.tables)

    def after(self, state: State, touched: Iterable[str]) -> Overview:
        """Update the overview for a state with new tables of some specs."""
        found = Overview(dict(self._due), dict(self._closes), self.open_windows, self.size)
        found._counted = dict(self._counted)
        for spec in touched:
            open_windows, size = found._counted.pop(spec, (0, 0))
            found.open_windows -= open_windows
            found.size -= size
            if spec not in state.tables:
                found._due.pop(spec, None)
                found._closes.pop(spec, None)
                continue
            summary = state.summary(spec)
            found._due[spec], found._closes[spec] = summary.next_due, summary.next_close
            found._counted[spec] = (summary.open_windows, summary.size)
            found.open_windows += summary.open_windows
            found.size += summary.size
        return found

    def due(self, safe_us: int) -> list[str]:
        """Return the specs with something possibly due at a safe time."""
        if min(self._due.values(), default=NEVER) > safe_us:
            return []
        return [spec for spec, at in self._due.items() if at <= safe_us]

    @property
    def next_close_us(self) -> int | None:
        """The earliest safe time that can seal a window."""
        closing = min(self._closes.values(), default=NEVER)
        return None if closing == NEVER else closing


def _apply(part: bytes, tables: Tables, touched: set[str]) -> int:
    """Apply a part of a serialised state to the tables, and collect its specs; return its layout version."""
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
    """Return the removed row numbers and the appended rows; None if the change has another form."""
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
    """Drop derived columns that layout 1 kept in rows buffers."""
    for of_spec in tables.values():
        if "buffer" in of_spec:
            unneeded = ("created", "count", "first", "last")
            of_spec["buffer"] = of_spec["buffer"].drop(unneeded).sort("k", maintain_order=True)


#: Upgrades of the tables of a layout to the next one.
_UPGRADES: dict[int, Callable[[Tables], None]] = {1: _narrow_buffers}
