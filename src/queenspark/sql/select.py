"""Queries: SELECT … FROM … and the clauses that follow, in any order, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..formats.sql_words import RESERVED
from . import options
from .cursor import Cursor
from .expression_parser import expression, expressions
from .statements import Item, Select, Star
from .tokens import Kind
from .window_parser import window

_ONE_SOURCE = (
    "a query reads one stream; "
    "declare a stream over several queues (WITH (queues = 'a, b')) to read them together"
)
_JOINS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
_CLAUSES = ("GROUP", "WINDOW", "HAVING", "EMIT", "WITH", "LIMIT")
_MOST = 2**31 - 1


def select(cursor: Cursor, *, limit: bool, checked: bool = True) -> Select:
    """Parse a query; only one that prints its rows can have a LIMIT. Options may be validated later."""
    span = cursor.span
    cursor.expect("SELECT")
    if cursor.sees("DISTINCT"):
        raise cursor.error("SELECT DISTINCT is not supported; use GROUP BY")
    items = _items(cursor)
    cursor.expect("FROM")
    if cursor.sees("("):
        raise cursor.error("subqueries are not supported; create a stream for the inner query and read that")
    source_span = cursor.span
    source = cursor.dotted_name("the name of a stream or queue")
    alias = _alias(cursor)
    _one_source(cursor)
    where = expression(cursor) if cursor.takes("WHERE") else None
    found = _clauses(cursor, limit=limit, checked=checked)
    return Select(
        items=items, source=source, source_span=source_span, alias=alias, where=where, span=span, **found
    )  # fmt: skip


def _items(cursor: Cursor) -> tuple[Item | Star, ...]:
    items = [_item(cursor)]
    while cursor.takes(","):
        items.append(_item(cursor))
    return tuple(items)


def _item(cursor: Cursor) -> Item | Star:
    span = cursor.span
    if cursor.takes("*"):
        return Star(span=span)
    found = expression(cursor)
    name = cursor.name("the name of the column") if cursor.takes("AS") else None
    if name is None and cursor.at(Kind.WORD, Kind.QUOTED) and not cursor.sees_any(RESERVED):
        raise cursor.error(f"expected a comma, AS or FROM, found {cursor.found()}; write AS before a name")
    return Item(expression=found, name=name, span=span)


def _alias(cursor: Cursor) -> str | None:
    if cursor.takes("AS"):
        return cursor.name("the alias")
    if cursor.at(Kind.QUOTED) or (cursor.at(Kind.WORD) and not cursor.sees_any(RESERVED)):
        return cursor.name("the alias")
    return None


def _one_source(cursor: Cursor) -> None:
    if cursor.sees(","):
        raise cursor.error(_ONE_SOURCE)
    if cursor.sees_any(_JOINS):
        raise cursor.error(f"joins are not supported; {_ONE_SOURCE}")


def _clauses(cursor: Cursor, *, limit: bool, checked: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    parsers: dict[str, Callable[[], dict[str, Any]]] = {
        "GROUP": lambda: {"group_by": _group_by(cursor)},
        "WINDOW": lambda: {"window": window(cursor)},
        "HAVING": lambda: {"having": _after_word(cursor)},
        "EMIT": lambda: _emit(cursor),
        "WITH": lambda: {"options": _options(cursor, checked=checked)},
        "LIMIT": lambda: {"limit": _limit(cursor)},
    }
    seen: set[str] = set()
    while cursor.at(Kind.WORD) and cursor.token.upper in parsers:
        word = cursor.token.upper
        name = "GROUP BY" if word == "GROUP" else word
        if word in seen:
            raise cursor.error(f"{name} is given twice; remove one")
        if word == "LIMIT" and not limit:
            raise cursor.error(
                "LIMIT is not supported in a job, which runs until it is dropped; remove it,"
                " or run the SELECT by itself"
            )
        seen.add(word)
        found |= parsers[word]()
    _refuse(cursor)
    return found


def _refuse(cursor: Cursor) -> None:
    if cursor.sees("WHERE"):
        raise cursor.error("WHERE must directly follow FROM, and be given once")
    if cursor.sees("ORDER"):
        raise cursor.error("ORDER BY is not supported: rows are emitted in stream order")
    if cursor.sees("UNION"):
        raise cursor.error(f"UNION is not supported; {_ONE_SOURCE}")
    if cursor.at(Kind.WORD) and not cursor.sees_any(RESERVED - {"BY"}):
        raise cursor.expected("a clause or the end of the query", ("WHERE", "GROUP BY", *_CLAUSES))


def _after_word(cursor: Cursor) -> Any:
    cursor.next()
    return expression(cursor)


def _group_by(cursor: Cursor) -> Any:
    cursor.expect("GROUP", "BY")
    return expressions(cursor)


def _emit(cursor: Cursor) -> dict[str, Any]:
    cursor.next()
    span = cursor.span
    return {"emit": cursor.choice(("CHANGES", "FINAL"), "an emit mode"), "emit_span": span}


def _options(cursor: Cursor, *, checked: bool) -> Any:
    cursor.next()
    found = options.options(cursor)
    return options.checked(found, options.JOB, "a query") if checked else found


def _limit(cursor: Cursor) -> int:
    cursor.next()
    return cursor.whole_number("LIMIT", 1, _MOST)
