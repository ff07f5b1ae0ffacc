"""Fields shared by all list responses."""

from __future__ import annotations

import msgspec


class CountedPage(msgspec.Struct, rename="camel", kw_only=True):
    """A page of a list; `total` covers all pages, `countedAt` is the time of large counts."""

    total: int
    limit: int
    offset: int
    counted_at: str | None


class GroupRates(msgspec.Struct, rename="camel"):
    """Rates of a group on a queue over the last minute."""

    popped_per_second: float
    acked_per_second: float


class QueueRates(GroupRates):
    """Rates of a queue over the last minute, over all its groups."""

    pushed_per_second: float
