"""A lost checkpoint: the state of some jobs reaches back further than the messages of their sources.

Time windows are rebuilt from the messages that retention keeps for them. The state of GROUP BY without a
window, of rows buffers and of count windows depends on all records since the start. If retention has removed
some of these, the state cannot be rebuilt: the job starts a new version where the old one stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from ...store.definitions import Body, Definition, Repeats, job_name
from ...store.pipeline import PipelineStore
from ...store.position import Position
from ...store.progress import End, Stream
from ...windows.spec import COUNTED
from .definitions import Definitions

log = logging.getLogger("queenspark.pipeline")


class Removal(NamedTuple):
    """The last removed position of a queue, and when."""

    position: Position
    at: datetime


def begin_versions(store: PipelineStore, run: str) -> None:
    """Start new versions of jobs with irrecoverably lost state; for the first batch of a run."""
    earlier = store.earlier_progress(run)
    if not earlier:
        return
    with store.changing_definitions() as change:
        seq = store.latest_seq()
        now = Definitions(seq, *store.definitions(seq))
        removals = {queue: Removal(Position(txid, id_), at) for queue, txid, id_, at in store.removals()}
        for stream, row in sorted(newest(now).items()):
            # An earlier run has no state of versions unknown to it.
            if change.begun(stream) > min(end.seq for end in earlier):
                continue
            gone = _removed(row, change.begun_at(stream), removals)
            if not gone or now.specs[stream].kind not in COUNTED:
                continue
            body = next_body(now, stream, earlier, store.failed_at(stream), gone)
            change.end(stream)
            if row.body.emits_after is not None:
                change.end((stream[0], stream[1] - 1))
            change.begin((stream[0], stream[1] + 1), body)
            log.warning("job %s: %s", job_name(body.namespace, body.name), body.notice)


def newest(now: Definitions) -> dict[Stream, Definition]:
    """The newest version of every stream or job with computed state."""
    last = dict(sorted(now.by_stream))
    return {
        stream: now.by_stream[stream]
        for stream in last.items()
        if stream in now.plans and stream in now.specs
    }


def next_body(
    now: Definitions, stream: Stream, earlier: Sequence[End], failed_at: Position | None, gone: Sequence[str]
) -> Body:
    """Build the version that continues from the end of the earlier run."""
    body = now.by_stream[stream].body
    begin = min(Position(*end.read_point(stream)[:2]) for end in earlier)
    if body.emits_after is not None and begin < (cut := Position(body.emits_after.txid, body.emits_after.id)):
        # It had not emitted anything yet: its predecessor had, up to there.
        before = (stream[0], stream[1] - 1)
        begin = min(cut, *(Position(*end.read_point(before)[:2]) for end in earlier))
    begin = begin if failed_at is None else min(begin, failed_at)
    txid, id_, tick = max(end.live for end in earlier)
    reasons = f"retention has removed records of {', '.join(gone)}"
    return msgspec.structs.replace(
        body,
        sources=tuple(
            msgspec.structs.replace(source, txid=after.txid, id=after.id)
            for source in body.sources
            for after in (max(begin, Position(source.txid, source.id)),)
        ),
        until=None,
        emits_after=None,
        # Some buckets of the earlier run may be ahead of the slowest one.
        repeats=Repeats(txid, id_, tick, first=stream[1], after=begin.txid),
        notice=f"the checkpoint was lost and {reasons}: version {stream[1] + 1} begins without its state",
    )


def _removed(row: Definition, begun_at: datetime, removals: dict[int, Removal]) -> list[str]:
    """The queues with removed records that the version may have read."""
    return [
        source.queue
        for source in row.body.sources
        if (removal := removals.get(source.queue_id)) is not None
        and removal.position > Position(source.txid, source.id)
        and removal.at > begun_at
    ]
