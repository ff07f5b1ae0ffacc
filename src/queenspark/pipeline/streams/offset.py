"""Offsets of the streams query: small, as JSON, and sufficient to rerun a batch exactly."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import msgspec

from ...store.progress import End, Progress


class Offset(End, frozen=True, kw_only=True):
    """The end of a batch in Spark's checkpoint.

    `again`: an earlier run has already reached this batch's end, or further.
    """

    again: bool = False

    @classmethod
    def first(cls) -> Offset:
        """The offset of a new checkpoint."""
        return cls(run=uuid4().hex[:12])

    @classmethod
    def parse(cls, offset: dict[str, Any]) -> Offset:
        """Parse an offset of Spark."""
        return msgspec.convert(offset, cls)

    def to_json(self) -> dict[str, Any]:
        """Encode for Spark, which compares offsets as text: always in the same order."""
        offset: dict[str, Any] = msgspec.to_builtins(self)
        return {**offset, "behind": dict(sorted(offset["behind"].items()))}

    def progress(self, **more: Any) -> Progress:
        """The progress of a bucket at this end."""
        return Progress(**{name: getattr(self, name) for name in End.__struct_fields__}, **more)


class Batch(msgspec.Struct, frozen=True):
    """A batch, as announced to every bucket."""

    start: Offset
    end: Offset
