"""The inputs of an explanation: the state of a stream or job, and the type of a reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ...store.definitions import job_name
from ...store.standing import Standing
from ...windows import WindowSpec
from ..responses.explanations import Code
from .next_window import NextWindow
from .records import OpenRecords

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Reason(NamedTuple):
    """A reason for an open window."""

    code: Code
    text: str
    fix: str
    since: datetime | None = None
    #: Its expected end, if known.
    until: datetime | None = None


class Case(NamedTuple):
    """The state of a stream or job to explain."""

    standing: Standing
    #: None: it has no windows, or emits rows with each record.
    spec: WindowSpec | None
    opened: OpenRecords | None
    next: NextWindow | None
    #: The oldest open transaction: pid, application, state, seconds.
    holder: dict[str, Any] | None

    @property
    def is_job(self) -> bool:
        """Whether it is a SQL job."""
        return self.standing.definition.body.query is not None

    @property
    def name(self) -> str:
        """Its name, as used in commands."""
        body = self.standing.definition.body
        return job_name(body.namespace, body.name) if self.is_job else body.name

    @property
    def reads(self) -> str:
        """The names of its sources."""
        outside = self.standing.definition.body.reads
        queues = ", ".join(source.queue for source in self.standing.sources)
        return queues if outside is None else outside.name

    @property
    def noun(self) -> str:
        """The kind of object."""
        return "job" if self.is_job else "stream"

    @property
    def safe_us(self) -> int | None:
        """Safe time in microseconds."""
        return None if self.standing.safe_time is None else to_micros(self.standing.safe_time)

    @property
    def is_due(self) -> bool:
        """Whether the next window has ended by the wall clock."""
        due = None if self.next is None else self.next.due_us
        return due is not None and due <= to_micros(self.standing.now)

    @property
    def is_safe_time_missing(self) -> bool:
        """Whether the next window has ended by the wall clock, but not by safe time."""
        if not self.is_due or self.next is None or self.next.due_us is None:
            return False
        return self.safe_us is None or self.safe_us < self.next.due_us


def to_micros(time: datetime) -> int:
    """Microseconds since the epoch."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def from_micros(microseconds: int) -> datetime | None:
    """Convert back; None beyond the year 9999, which a payload may contain."""
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def counted(number: int, noun: str) -> str:
    """Format a count with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
