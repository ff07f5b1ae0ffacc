"""How a job is replaced when its statement changes."""

from __future__ import annotations

from typing import Any

import msgspec

from ...sql.statements import CreateStream, Select
from ...store.job import How

#: Options that can change within a version.
_IN_PLACE = {"grace", "idle_timeout", "late", "retention", "ttl"}


def how_it_changes(
    old: CreateStream, new: CreateStream, before: dict[str, Any], after: dict[str, Any]
) -> How:
    """Return how one statement replaces another; `before` and `after` are their stored queries."""
    if _reads(before) != _reads(after) or old.columns != new.columns:
        return "by position"
    one, other = _lasting(old.query), _lasting(new.query)
    if one == other:
        return "in place"
    if one.window is None or other.window is None or one.window.time != other.window.time:
        return "by position"
    same = one == msgspec.structs.replace(other, window=one.window)
    return "at a boundary" if same else "by position"


def _lasting(query: Select) -> Select:
    """Return a query without the options that can change within a version."""
    options = tuple(option for option in query.options if option.name not in _IN_PLACE)
    return msgspec.structs.replace(query, options=options)


def _reads(frozen: dict[str, Any]) -> bytes:
    """The relation that a query was planned over, and the decoded paths; its delay only sets a default."""
    kept = {name: value for name, value in frozen["relation"].items() if name != "delay_us"}
    return msgspec.json.encode(kept, order="sorted")
