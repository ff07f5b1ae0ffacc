"""The read plan of a batch of the streams query: ranges of the log, and their streams."""

from __future__ import annotations

from typing import NamedTuple

from ...store.position import END, Position
from ...store.progress import Stream, name_of, stream_of
from .definitions import Definitions
from .offset import Offset


class Range(NamedTuple):
    """Messages after one position and up to another, of some queues, for some streams."""

    streams: frozenset[Stream]
    queues: tuple[int, ...]
    after: Position
    upto: Position


class Starts(NamedTuple):
    """The positions of the streams before a batch."""

    live: set[Stream]  # at the offset's own position
    behind: dict[Stream, Position]  # catching up
    added: list[Range]  # the backlog of a source added to a stream


def starts(start: Offset, before: Definitions, now: Definitions) -> Starts:
    """Return the position of each stream before a batch with the definitions `now`."""
    found = Starts(set(), {}, [])
    position = start.position
    alive = now.alive(start)
    if before is now:  # no new streams and no new sources
        behind = {
            stream: point for name, point in start.behind.items() if (stream := stream_of(name)) in alive
        }
        return Starts(
            set(alive).difference(behind),
            {stream: Position(point[0], point[1]) for stream, point in behind.items()},
            [],
        )
    for stream, row in alive.items():
        known = before.by_stream.get(stream)
        if (point := start.behind.get(name_of(stream))) is not None:
            found.behind[stream] = Position(point[0], point[1])
        elif known is None and now.begin(stream) < position:
            found.behind[stream] = now.begin(stream)
        else:
            found.live.add(stream)
            old = {source.queue_id for source in known.body.sources} if known is not None else set()
            for source in row.body.sources:
                after = Position(source.txid, source.id)
                if known is not None and source.queue_id not in old and after < position:
                    found.added.append(Range(frozenset({stream}), (source.queue_id,), after, position))
    return found


def live_start(now: Definitions, live: set[Stream], start: Offset) -> Position:
    """The position after which streams that are not behind continue."""
    position = start.position
    if any(now.begin(stream) <= position for stream in live):
        return position
    return min(map(now.begin, live), default=END)


def cohorts(behind: dict[Stream, Position]) -> dict[Position, set[Stream]]:
    """Group streams at the same position, which read together."""
    found: dict[Position, set[Stream]] = {}
    for stream, position in sorted(behind.items()):
        found.setdefault(position, set()).add(stream)
    return found


def ranges(start: Offset, end: Offset, before: Definitions, now: Definitions) -> list[Range]:
    """Return all ranges of a batch; deterministic for the same offsets.

    A stream that is behind only at the end is held: nothing is read for it.
    """
    at = starts(start, before, now)
    found = list(at.added)
    live = at.live.difference(map(stream_of, end.behind))
    after = live_start(now, live, start)
    if end.position > after:
        found += _ranges(now, live, after, end.position)
    for after, streams in cohorts(at.behind).items():
        ends: dict[Position, set[Stream]] = {}
        for stream in streams:
            txid, id_, _ = end.read_point(stream)
            ends.setdefault(Position(txid, id_), set()).add(stream)
        for upto, some in ends.items():
            found += _ranges(now, some, after, upto) if upto > after else []
    return found


def _ranges(now: Definitions, streams: set[Stream], after: Position, upto: Position) -> list[Range]:
    """Read payloads only from queues with payload readers."""
    queues = now.queues(streams)
    parts = [
        tuple(queue for queue in queues if (queue in now.decoded_queues) == is_decoded)
        for is_decoded in (False, True)
    ]
    return [Range(frozenset(streams), part, after, upto) for part in parts if part]
