"""The parameters of lists: limit, offset, sort and search, by the same names everywhere."""

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
    """A page of a list that has an order of its own."""

    limit: Limit = 100
    offset: Offset = 0


class PageQuery(msgspec.Struct):
    """A page of a list. Without a limit it has up to 1,000 rows: clients that know no pages get all."""

    limit: Limit = MOST
    offset: Offset = 0
    sort: str = "name"
    search: str | None = None


def page_of(query: PageQuery, *sorts: str, visible: list[str] | None) -> Page:
    """The page that a query asks for. It can be sorted by name and by `sorts`, with a minus descending.

    `visible` is what the caller may see, as `Call.visible` gives it.
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
    """The body of a list: its rows under their name, the total over all pages, and which page this is."""
    return {name: rows, "total": total, "limit": query.limit, "offset": query.offset}
