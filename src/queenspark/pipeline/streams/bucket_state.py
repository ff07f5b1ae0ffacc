"""The engine's state of a bucket, as Spark keeps it: a whole state, and what each batch has changed since.

A batch writes what it changed, not all that is open. Workers of Spark live on from batch to batch and keep
the states that they made, so most batches read nothing, or only what other workers have changed meanwhile.
"""

from __future__ import annotations

from uuid import uuid4

import msgspec
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from ...windows import State
from ...windows.state import VERSION

Cursors = dict[str, tuple[int, int]]
_MOST_PARTS = 50
_LEAST_BYTES = 256 * 1024  # of changes, before the whole state is written again


class _Head(msgspec.Struct):
    """What the parts are, in their order: the whole state, then changes."""

    version: int
    #: Random: what a failed batch has left behind in a process is never taken for what the next one wrote.
    ids: list[str]
    sizes: list[int]
    #: Of jobs that failed in some bucket: the position that this bucket has read them to, by "id:version".
    cursors: dict[str, tuple[int, int]] = {}

    @property
    def is_due(self) -> bool:
        """Whether the whole state should be written again."""
        first, *changes = self.sizes
        too_large = sum(changes) > max(first, _LEAST_BYTES)
        return too_large or len(changes) >= _MOST_PARTS or self.version != VERSION


_remembered: dict[int, tuple[list[str], State]] = {}
"""By bucket: the parts that this process knows, and the state that they make."""


class BucketState:
    """Reads and writes the state of the bucket that a call is for."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "parts string")
        self._parts = handle.getMapState("parts", "number int", "part binary")

    def load(self, bucket: int) -> State | None:
        """The state before this batch."""
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
        """The position that jobs which failed in some bucket have been read to in this one."""
        head = self._read_head()
        return {} if head is None else head.cursors

    def save(self, bucket: int, before: State | None, state: State, cursors: Cursors) -> None:
        """Keep the state after this batch."""
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
