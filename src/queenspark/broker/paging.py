"""List parameters: limit, offset, sort and search, with the same names everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..store.page import MOST, Page
from .errors import bad_request

Limit = Annotated[int, Meta(ge=1, le=MOST)]
Offset = Annotated[int, Meta(ge=0, le=2**31)]


class OffsetQuery(msgspec.Struct):
    """A page of a list in its natural order."""

    limit: Limit = 100
    offset: Offset = 0


class PageQuery(msgspec.Struct):
    """A page of a list. The default limit is 1,000 rows, for clients without paging."""

    limit: Limit = MOST
    offset: Offset = 0
    sort: str = "name"
    search: str | None = None


def page_of(query: PageQuery, *sorts: str, visible: list[str] | None) -> Page:
    """Build the page for a query. It can be sorted by name and by `sorts`, descending with a minus.

    `visible` are the names that the caller may see, from `Call.visible`.
    """
    sort = query.sort.removeprefix("-")
    if sort not in ("name", *sorts):
        raise bad_request(
            f"sort ({query.sort}) must be one of {', '.join(('name', *sorts))},"
            " with a leading minus for descending order"
        )
    search = query.search.replace("\x00", "") if query.search else None
    return Page(query.limit, query.offset, sort, query.sort.startswith("-"), search, visible)


def paged(name: str, rows: Sequence[Any], total: int, query: PageQuery | OffsetQuery) -> dict[str, Any]:
    """Build the body of a list: its rows under their name, the total over all pages, and the page."""
    return {name: rows, "total": total, "limit": query.limit, "offset": query.offset}
