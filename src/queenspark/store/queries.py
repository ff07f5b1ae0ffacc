"""Named SQL blocks: `sql/queries.sql` is split at lines of the form ``-- name: word``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString

from psycopg import sql

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def text(name: str) -> str:
    """Read a file below `sql/`."""
    return (files(__package__) / "sql" / name).read_text(encoding="utf-8")


@cache
def _blocks() -> dict[str, str]:
    parts = _NAME.split(text("queries.sql"))
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def query(name: str) -> LiteralString:
    """Return the block of this name."""
    return _blocks()[name]


def written(name: str, values: Mapping[str, Any], **parts: sql.Composable) -> str:
    """Return the block of this name with values and pieces of SQL substituted."""
    statement = sql.SQL(query(name)).format(**parts).as_string()
    return statement % {key: sql.Literal(value).as_string() for key, value in values.items()}


def names() -> list[str]:
    """All block names."""
    return list(_blocks())
