"""Names and keywords: the words that need backquotes as names."""

from __future__ import annotations

import re

RESERVED = frozenset([
    "ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "CAST", "CREATE", "CROSS", "DISTINCT", "DROP",
    "ELSE", "EMIT", "END", "ESCAPE", "EXPLAIN", "FALSE", "FROM", "FULL", "GROUP", "HAVING", "ILIKE",
    "IN", "INNER", "INSERT", "INTERVAL", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NATURAL",
    "NOT", "NULL", "ON", "OR", "ORDER", "OUTER", "OVER", "RIGHT", "RLIKE", "SELECT", "THEN", "TRUE",
    "TRY_CAST", "UNION", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH",
])  # fmt: skip
#: Reserved words that are functions before a parenthesis.
ALSO_FUNCTIONS = frozenset(["LEFT", "RIGHT"])
_PLAIN = re.compile(r"[^\W\d]\w*")


def name_text(name: str) -> str:
    """Format a name, with backquotes if needed."""
    if _PLAIN.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def dotted_text(name: str) -> str:
    """Format the name of a stream or queue; a dot separates its namespace."""
    return (
        ".".join(name_text(part) for part in name.split(".")) if name.strip(".") == name else name_text(name)
    )
