"""How far the streams query has come: small, as JSON, and enough to run a batch again just as it was."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import msgspec

from ...store.progress import End, Progress


class Offset(End, frozen=True, kw_only=True):
    """The end of a batch as Spark's checkpoint keeps it.

    `again` says that an earlier run has come to this batch's end, or further.
    """

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

    def progress(self, **more: Any) -> Progress:
        """What a bucket notes when it has come to this end."""
        return Progress(**{name: getattr(self, name) for name in End.__struct_fields__}, **more)


class Batch(msgspec.Struct, frozen=True):
    """A batch, as every bucket is told of it."""

    start: Offset
    end: Offset
