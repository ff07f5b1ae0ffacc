"""Which records belong to a version of a stream, and which of those to a window.

The only implementation of this rule: for frames of a batch in the router and the window processor, for
hydrated records in the broker, and for handovers between versions in the store. Computed keys, conditions and
times come from the plan's first stage (`sql.running`), in the pipeline and in the broker alike. The SQL
functions `messages_between` and `window_records` apply `Members.partition` and `Members.created`, and no
other part.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import polars as pl

from .event_time import event_times
from .layout import NEVER
from .spec import COUNTED, WindowSpec

OVER = NEVER
"""The end of a version that emits nothing more."""

LEAVES_OUT = ("session",)
"""Kinds of windows with dropped records between their first and last position, indistinguishable by time."""

_ANY_TIME = (NEVER, -NEVER)

Position = tuple[int, int]  # txid and id
Span = tuple[int, int]  # microseconds: start inclusive, end exclusive


# A version of a stream


def is_in_version() -> pl.Expr:
    """Whether a message belongs to a version of a stream.

    Messages have txid, id and created_us. It must be after the position after_txid, after_id at which the
    version starts reading its queue, not after until_txid, until_id, and created before before_us; the last
    two may be null.
    """
    goes_on = ~_is_after(("txid", "id"), ("until_txid", "until_id"))
    is_early = pl.col("created_us") < pl.col("before_us")
    return (
        _is_after(("txid", "id"), ("after_txid", "after_id"))
        & goes_on.fill_null(True)
        & is_early.fill_null(True)
    )


def is_given_out() -> pl.Expr:
    """Whether a version emits a window: start_us at or after from_us and before until_us.

    Either may be null.
    """
    begun = pl.col("start_us") >= pl.col("from_us")
    goes_on = pl.col("start_us") < pl.col("until_us")
    return begun.fill_null(True) & goes_on.fill_null(True)


def is_counted_from() -> pl.Expr:
    """Whether a record is not before the position from_txid, from_id from which its key continues."""
    return ~_is_after(("from_txid", "from_id"), ("txid", "id")).fill_null(False)


def _is_after(this: tuple[str, str], other: tuple[str, str]) -> pl.Expr:
    """Compare positions as pairs."""
    (txid, id_), (other_txid, other_id) = this, other
    return (pl.col(txid) > pl.col(other_txid)) | (
        (pl.col(txid) == pl.col(other_txid)) & (pl.col(id_) > pl.col(other_id))
    )


def created_before(spec: WindowSpec, until_us: int | None) -> int | None:
    """When all records of a version that ends at until_us are created, if the clock alone determines it."""
    if until_us is None or spec.clock == "event" or not spec.duration:
        return None
    return until_us + spec.duration


def is_over(spec: WindowSpec, until_us: int | None, tick: int) -> bool:
    """Whether a version that ends at until_us has emitted its last window at a safe time."""
    if until_us is None:
        return False
    return until_us + spec.duration + spec.gap + spec.grace_us + spec.idle + spec.keep < tick


# From one version to the next


class Handover(NamedTuple):
    """Where one version of a stream ends and the next begins."""

    #: Records are split by position: each is in one version.
    by_position: bool = False
    #: The old version emits windows that start before this time.
    until_us: int | None = None
    #: The new one emits windows that start at or after this time.
    from_us: int | None = None
    #: The new one reads records created at or after this time; without it, records from now on.
    reads_from_us: int | None = None


def handover(old: WindowSpec, new: WindowSpec, now_us: int) -> Handover:
    """Plan the handover to a new version, so that no record is lost.

    With count windows, records are split by position. Otherwise the old version emits its windows up to the
    next boundary of its grid, and the new one starts at or before it: at a boundary of its own grid, or with
    sessions at once. Records in between are in a window of each version.
    """
    if any(spec.kind in COUNTED for spec in (old, new)):
        return Handover(by_position=True)
    boundary = (now_us // old.duration + 1) * old.duration if old.duration else now_us
    return Handover(
        until_us=boundary,
        from_us=aligned(new, boundary) if new.slide else None,
        reads_from_us=min(now_us, boundary - new.duration) if new.duration else None,
    )


def aligned(spec: WindowSpec, time_us: int) -> int:
    """Align a time down to the windows' grid; unchanged if there is no grid."""
    return time_us // spec.slide * spec.slide if spec.slide else time_us


# A window


def is_in_window(spec: WindowSpec, span: Span) -> pl.Expr:
    """Whether a record of the window's key, between its positions, has a time inside the window."""
    if spec.kind in COUNTED:
        return pl.lit(True)
    time = pl.col("created_us" if spec.clock == "ingest" else "event_us")
    return (time >= span[0]) & (time < span[1])


class Members(NamedTuple):
    """The filter on the records between a window's first and last position."""

    #: Partition name; None: all.
    partition: str | None
    #: Creation time range, for windows by ingest time.
    created: Span | None
    #: The path of the event time …
    path: str | None
    #: … and its range.
    time: Span
    #: Whether dropped records are excluded.
    leaves_out: bool

    @classmethod
    def of(cls, spec: WindowSpec, path: str | None, partitioned: bool, key: str, span: Span) -> Members:
        """Build the filter of a window; `path` is that of the event time, `span` its start and end."""
        counted = spec.kind in COUNTED
        return cls(
            partition=key if partitioned else None,
            created=None if counted or path is not None else span,
            path=path,
            time=_ANY_TIME if counted else span,
            leaves_out=spec.kind in LEAVES_OUT,
        )

    def contain(
        self, positions: Sequence[Position], payloads: Sequence[str], dropped: Collection[Position]
    ) -> list[bool]:
        """Return which records are members, given those that pass the partition and creation time filters."""
        inside = [position not in dropped for position in positions]
        if self.path is None or not payloads:
            return inside
        first, end = self.time
        times = event_times(pl.Series(payloads, dtype=pl.String), self.path).to_list()
        return [
            is_there and time is not None and first <= time < end
            for is_there, time in zip(inside, times, strict=True)
        ]
