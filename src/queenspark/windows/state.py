"""The engine's state: a few columnar tables for each spec, and their form as bytes."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable

import msgspec
import polars as pl

from .errors import StateError

VERSION = 2

Tables = dict[str, dict[str, pl.DataFrame]]  # by spec as JSON, and name


class _Header(msgspec.Struct):
    version: int
    tables: list[tuple[str, str, int]]  # spec as JSON, table, bytes


class State:
    """Tables by spec (as JSON) and name; never changed in place, so a state can be kept and gone back to."""

    def __init__(self, tables: Tables | None = None) -> None:
        self.tables = tables or {}

    def to_bytes(self) -> bytes:
        """Compact, versioned bytes: a header, then each table as Arrow IPC."""
        blobs: list[bytes] = []
        entries: list[tuple[str, str, int]] = []
        for spec, tables in self.tables.items():
            for name, table in tables.items():
                file = io.BytesIO()
                table.write_ipc(file, compression="lz4")
                blobs.append(file.getvalue())
                entries.append((spec, name, len(blobs[-1])))
        header = msgspec.json.encode(_Header(VERSION, entries))
        return b"".join([struct.pack("<I", len(header)), header, *blobs])

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """The state again; older layouts are brought up to date."""
        try:
            (size,) = struct.unpack_from("<I", data)
            header = msgspec.json.decode(data[4 : 4 + size], type=_Header)
        except (struct.error, msgspec.MsgspecError) as error:
            raise StateError("not a state of the window engine") from error
        if header.version > VERSION:
            raise StateError(f"the state has layout {header.version}; this version knows up to {VERSION}")
        tables: Tables = {}
        at = 4 + size
        for spec, name, length in header.tables:
            tables.setdefault(spec, {})[name] = pl.read_ipc(io.BytesIO(data[at : at + length]))
            at += length
        for version in range(header.version, VERSION):
            _UPGRADES[version](tables)
        return cls(tables)

    def size(self) -> int:
        """Bytes in memory."""
        return sum(
            int(table.estimated_size()) for tables in self.tables.values() for table in tables.values()
        )


def _narrow_buffers(tables: Tables) -> None:
    """Layout 1 kept columns of rows buffers that follow from others."""
    for of_spec in tables.values():
        if "buffer" in of_spec:
            unneeded = ("created", "count", "first", "last")
            of_spec["buffer"] = of_spec["buffer"].drop(unneeded).sort("k", maintain_order=True)


#: What brings the tables of a layout to the next one.
_UPGRADES: dict[int, Callable[[Tables], None]] = {1: _narrow_buffers}
