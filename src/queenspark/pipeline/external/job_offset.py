"""How far the query of a job has come: small, as JSON, and enough to run a batch again just as it was."""

from __future__ import annotations

from typing import Any

import msgspec

from ...store.progress import End, Progress
from ..streams.offset import Batch, Offset


class JobOffset(Offset, frozen=True, kw_only=True):
    """The end of a batch of a job: the position in its source, and whether the source has ended.

    With `single`, its records travel one by one: some were late before (see windows/merging.py).
    """

    position: Any = None
    ended: bool = False
    single: bool = False

    def progress(self, **more: Any) -> Progress:
        """What a bucket notes when it has come to this end."""
        names = (*End.__struct_fields__, "position", "ended")
        return Progress(**{name: getattr(self, name) for name in names}, **more)


class JobBatch(Batch, frozen=True):
    """A batch of a job, as every bucket is told of it."""

    start: JobOffset
    end: JobOffset


def parse_batch(text: str) -> JobBatch:
    """A batch as buckets are told of it."""
    return msgspec.json.decode(text, type=JobBatch)
