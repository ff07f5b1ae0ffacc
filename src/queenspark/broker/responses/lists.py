"""Fields shared by all list responses."""

from __future__ import annotations

import msgspec


class CountedPage(msgspec.Struct, rename="camel", kw_only=True):
    """A page of a list; `total` covers all pages, `countedAt` is the time of large counts."""

    total: int
    limit: int
    offset: int
    counted_at: str | None
