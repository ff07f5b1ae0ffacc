"""How far the pipeline has come: the end of a batch, and what each bucket notes together with its windows.

The table `progress` keeps a `Progress` as JSON in its column `state`. SQL reads only the columns that are
generated from it. Spark keeps the end of a batch in its checkpoint. Versions take over from each other:
fields are added with a default, and never removed or given another meaning.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..windows.layout import NEVER
from .position import BEGIN, Position

Stream = tuple[int, int]  # id and version
Place = tuple[int, int, int]  # txid, id and tick


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a batch.

    Everything up to the position (txid, id) was read, and safe time was `tick` then. Streams that have still
    to catch up have places of their own, by "id:version". `seq` is the last change of the definitions that
    was known. A run is the life of a checkpoint, and `n` counts its batches.
    """

    run: str
    n: int = 0
    txid: int = BEGIN.txid
    id: int = BEGIN.id
    tick: int = NEVER
    seq: int = 0
    behind: dict[str, Place] = {}

    @property
    def position(self) -> Position:
        """The position that all streams which are not behind have come to."""
        return Position(self.txid, self.id)

    @property
    def live(self) -> Place:
        """The place of all streams which are not behind."""
        return self.txid, self.id, self.tick

    def place(self, stream: Stream) -> Place:
        """Where a stream stands, with its safe time."""
        return self.behind.get(name_of(stream), self.live)


class Progress(End, frozen=True, kw_only=True):
    """What a bucket notes: the end of its last batch, and when its next window wants to be sealed.

    For people also: how many records that batch had, and how many seconds it took.
    """

    next_close: int | None = None
    records: int = 0
    seconds: float = 0.0
    #: How many windows and rows of the batch after this one are pushed already.
    pushed: int = 0
    #: Of a job with a query of its own: how far its source was read, and whether it has ended.
    position: Any = None
    ended: bool = False


def to_progress(state: dict[str, Any]) -> Progress:
    """Progress from the column `state`, whichever version has written it."""
    return msgspec.convert(state, Progress)


def name_of(stream: Stream) -> str:
    """A stream and version as `behind` names them."""
    return f"{stream[0]}:{stream[1]}"
