"""How far the streams query has come: small, as JSON, and enough to run a batch again just as it was."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import msgspec

from ...store.position import BEGIN, Position
from ...windows.layout import NEVER

Stream = tuple[int, int]  # id and version
Place = tuple[int, int, int]  # txid, id and tick


class Offset(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a batch.

    Everything up to the position (txid, id) was read, and safe time was `tick` then. Streams that have still
    to catch up have places of their own, by "id:version". `seq` is the last change of the definitions that
    was known. A run is the life of a checkpoint, and `n` counts its batches; `again` says that an earlier run
    has come to this batch's end, or further.
    """

    run: str
    n: int = 0
    txid: int = BEGIN.txid
    id: int = BEGIN.id
    tick: int = NEVER
    seq: int = 0
    behind: dict[str, Place] = {}
    again: bool = False

    @classmethod
    def first(cls) -> Offset:
        """Where a new checkpoint begins."""
        return cls(run=uuid4().hex[:12])

    @classmethod
    def parse(cls, offset: dict[str, Any]) -> Offset:
        """An offset as Spark keeps it."""
        return msgspec.convert(offset, cls)

    def to_json(self) -> dict[str, Any]:
        """For Spark, which compares offsets as text: always in the same order."""
        offset: dict[str, Any] = msgspec.to_builtins(self)
        return {**offset, "behind": dict(sorted(offset["behind"].items()))}

    @property
    def position(self) -> Position:
        """The position that all streams which are not behind have come to."""
        return Position(self.txid, self.id)

    def place(self, stream: Stream) -> Place:
        """Where a stream stands, with its safe time."""
        return self.behind.get(name_of(stream), (self.txid, self.id, self.tick))


def name_of(stream: Stream) -> str:
    """A stream and version as the offset writes them."""
    return f"{stream[0]}:{stream[1]}"
