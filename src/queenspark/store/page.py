"""A page of a list: row range and order."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST = 1000
"""Maximum number of rows per page."""


class Page(NamedTuple):
    """Sorted rows from `offset` on, whose name contains `search`."""

    limit: int = MOST
    offset: int = 0
    sort: str = "name"
    descending: bool = False
    search: str | None = None
    #: Only names that match one of these LIKE patterns.
    visible: list[str] | None = None

    def params(self) -> dict[str, Any]:
        """The page as statement parameters."""
        return self._asdict()


Rows = tuple[list[dict[str, Any]], int]
"""The rows of a page, and the total over all pages."""
