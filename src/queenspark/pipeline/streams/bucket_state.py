"""The engine's state of a bucket in Spark's state store: a snapshot, and the deltas of later batches.

A batch writes its delta, not the whole state. Spark's workers live from batch to batch and cache the states
they computed, so most batches read nothing, or only the deltas of other workers.
"""

from __future__ import annotations

from uuid import uuid4

import msgspec
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from ...windows import State
from ...windows.state import VERSION

Cursors = dict[str, tuple[int, int]]
_MOST_PARTS = 50
_LEAST_BYTES = 256 * 1024  # of deltas, before the next snapshot


class _Head(msgspec.Struct):
    """The parts in order: the snapshot, then deltas."""

    version: int
    #: Random: parts cached from a failed batch are never mistaken for those of its rerun.
    ids: list[str]
    sizes: list[int]
    #: For jobs that failed in some bucket: this bucket's read position, by "id:version".
    cursors: dict[str, tuple[int, int]] = {}

    @property
    def is_due(self) -> bool:
        """Whether a new snapshot should be written."""
        first, *changes = self.sizes
        too_large = sum(changes) > max(first, _LEAST_BYTES)
        return too_large or len(changes) >= _MOST_PARTS or self.version != VERSION


_remembered: dict[int, tuple[list[str], State]] = {}
"""By bucket: the parts that this process has cached, and their state."""


class BucketState:
    """Reads and writes the state of the current bucket."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "parts string")
        self._parts = handle.getMapState("parts", "number int", "part binary")

    def load(self, bucket: int) -> State | None:
        """Load the state before this batch."""
        head = self._read_head()
        if head is None:
            return None
        ids, state = _remembered.get(bucket, ([], State()))
        if head.ids[: len(ids)] != ids or head.version != VERSION:
            ids, state = [], State()
        missing = [self._part(number) for number in range(len(ids), len(head.ids))]
        state = state.after(*missing) if missing else state
        _remembered[bucket] = (head.ids, state)
        return state

    def cursors(self) -> Cursors:
        """The read position in this bucket of jobs that failed in some bucket."""
        head = self._read_head()
        return {} if head is None else head.cursors

    def save(self, bucket: int, before: State | None, state: State, cursors: Cursors) -> None:
        """Save the state after this batch."""
        head = self._read_head()
        if head is None or before is None or head.is_due:
            for number in range(len(head.ids) if head is not None else 0):
                self._parts.removeKey((number,))
            head = _Head(VERSION, [], [])
            part: bytes | None = state.to_bytes()
        else:
            part = state.since(before)
            if part is None and cursors == head.cursors:
                return
        if part is not None:
            self._parts.updateValue((len(head.ids),), (part,))
            head = _Head(VERSION, [*head.ids, uuid4().hex], [*head.sizes, len(part)])
        self._head.update((msgspec.json.encode(msgspec.structs.replace(head, cursors=cursors)).decode(),))
        _remembered[bucket] = (head.ids, state.rechunked(before))

    def _part(self, number: int) -> bytes:
        found = self._parts.getValue((number,))
        assert found is not None, f"part {number} of the state is missing"
        return bytes(found[0])

    def _read_head(self) -> _Head | None:
        known = self._head.get()
        return None if known is None else msgspec.json.decode(known[0], type=_Head)
