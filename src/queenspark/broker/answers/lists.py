"""What all lists answer beside their rows."""

from __future__ import annotations

import msgspec


class CountedPage(msgspec.Struct, rename="camel", kw_only=True):
    """A page of a list; `total` counts the rows of all pages, `countedAt` is the time of larger numbers."""

    total: int
    limit: int
    offset: int
    counted_at: str | None
