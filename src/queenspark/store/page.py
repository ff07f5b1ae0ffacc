"""A page of a list: which rows, in which order."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST = 1000
"""Rows of a page at most."""


class Page(NamedTuple):
    """Rows from `offset` on, of those whose name contains `search`, sorted."""

    limit: int = MOST
    offset: int = 0
    sort: str = "name"
    descending: bool = False
    search: str | None = None
    #: Only names that match one of these patterns of LIKE.
    visible: list[str] | None = None

    def params(self) -> dict[str, Any]:
        """As parameters of the statements."""
        return self._asdict()


Rows = tuple[list[dict[str, Any]], int]
"""The rows of a page, and how many rows all pages have."""
