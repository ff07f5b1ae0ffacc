"""The offset of a job's query: small JSON that is sufficient to replay a batch exactly."""

from __future__ import annotations

from typing import Any

import msgspec

from ...store.progress import End, Progress
from ...windows.layout import NEVER
from ..streams.offset import Batch, Offset


class JobOffset(Offset, frozen=True, kw_only=True):
    """The end of a batch: the position in the source, and whether the source has ended.

    `now` is the database's clock when the batch was planned; unlike `tick`, it does not stand still. Offsets
    of earlier versions do not have it. `lag` is how far `tick` is behind the wall clock, approximately: the
    engine adds it to both the tick and the times in its state, so that silence is that of `tick` and windows
    end by the wall clock. With `single`, records are not merged, because the job has had late records (see
    windows/merging.py).
    """

    position: Any = None
    ended: bool = False
    single: bool = False
    now: int = NEVER
    lag: int = 0

    @property
    def read_us(self) -> int:
        """The time at which the batch is read, the same whenever it is replayed."""
        return max(self.tick, self.now)

    def progress(self, **more: Any) -> Progress:
        """Return the progress that a bucket records when it reaches this offset."""
        names = (*End.__struct_fields__, "position", "ended")
        return Progress(**{name: getattr(self, name) for name in names}, **more)


class JobBatch(Batch, frozen=True):
    """A batch of a job, as sent to every bucket."""

    start: JobOffset
    end: JobOffset


def parse_batch(text: str) -> JobBatch:
    """Parse a batch that was sent to a bucket."""
    return msgspec.json.decode(text, type=JobBatch)
