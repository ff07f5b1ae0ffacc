"""Progress of the pipeline: the end of a batch, and the progress that each bucket commits with its windows.

The table `progress` stores a `Progress` as JSON in its column `state`. SQL reads only the columns generated
from it. Spark keeps the end of a batch in its checkpoint. Versions must stay compatible: fields are added
with a default, and never removed or given another meaning.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..windows.layout import NEVER
from .position import BEGIN, Position

Stream = tuple[int, int]  # id and version
ReadPoint = tuple[int, int, int]  # txid, id and tick


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a batch.

    Everything up to the position (txid, id) was read, and safe time was `tick` then. Streams that still catch
    up have their own positions, by "id:version". `seq` is the last known change of the definitions. A run is
    the life of a checkpoint, and `n` counts its batches.
    """

    run: str
    n: int = 0
    txid: int = BEGIN.txid
    id: int = BEGIN.id
    tick: int = NEVER
    seq: int = 0
    behind: dict[str, ReadPoint] = {}

    @property
    def position(self) -> Position:
        """The position of all streams that are not behind."""
        return Position(self.txid, self.id)

    @property
    def live(self) -> ReadPoint:
        """The position and safe time of all streams that are not behind."""
        return self.txid, self.id, self.tick

    def read_point(self, stream: Stream) -> ReadPoint:
        """The position and safe time of a stream."""
        return self.behind.get(name_of(stream), self.live)


class Progress(End, frozen=True, kw_only=True):
    """The progress of a bucket: the end of its last batch, and the time to seal its next window.

    For monitoring also the number of records in that batch, and its duration in seconds.
    """

    next_close: int | None = None
    records: int = 0
    seconds: float = 0.0
    #: Number of windows and rows of the next batch that are already pushed.
    pushed: int = 0
    #: For a job with its own query: the position in its source, and whether the source has ended.
    position: Any = None
    ended: bool = False


def to_progress(state: dict[str, Any]) -> Progress:
    """Decode the column `state`, written by any version."""
    return msgspec.convert(state, Progress)


def stream_of(name: str) -> Stream:
    """Parse a stream and version from their key in `behind`."""
    stream, _, version = name.partition(":")
    return int(stream), int(version)


def name_of(stream: Stream) -> str:
    """Format a stream and version as their key in `behind`."""
    return f"{stream[0]}:{stream[1]}"
