"""The canonical text of a statement. Parsing it gives the same statement."""

from __future__ import annotations

from functools import singledispatch

import msgspec

from ..formats.sql_words import dotted_text, name_text
from .duration import duration_text
from .expression_text import expression_text, type_text
from .options import shown_value
from .statements import (
    COUNTED,
    Column,
    ControlJob,
    CreateSink,
    CreateSource,
    CreateStream,
    DeclareStream,
    Describe,
    Drop,
    Explain,
    Insert,
    Item,
    Option,
    Select,
    Show,
    Star,
    Statement,
    Window,
)
from .strings import quoted


def canonical(statement: Statement) -> str:
    """The canonical text of a statement."""
    return _text(statement)


def shown(statement: CreateSource | CreateSink) -> str:
    """The canonical text without secrets, for display."""
    options = tuple(
        msgspec.structs.replace(each, value=shown_value(each.name, each.value)) for each in statement.options
    )
    return canonical(msgspec.structs.replace(statement, options=options))


@singledispatch
def _text(statement: object) -> str:
    raise TypeError(f"{type(statement).__name__} is not a statement")


@_text.register
def _(statement: Select) -> str:
    parts = [
        "SELECT",
        ", ".join(_item(item) for item in statement.items),
        "FROM",
        dotted_text(statement.source),
    ]
    if statement.alias is not None:
        parts.append(name_text(statement.alias))
    if statement.where is not None:
        parts += ["WHERE", expression_text(statement.where)]
    if statement.group_by:
        parts += ["GROUP BY", ", ".join(map(expression_text, statement.group_by))]
    if statement.window is not None:
        parts += ["WINDOW", _window(statement.window)]
    if statement.having is not None:
        parts += ["HAVING", expression_text(statement.having)]
    if statement.emit is not None:
        parts += ["EMIT", statement.emit]
    parts += _options(statement.options)
    if statement.limit is not None:
        parts.append(f"LIMIT {statement.limit}")
    return " ".join(parts)


@_text.register
def _(statement: CreateStream) -> str:
    return " ".join(
        [_create("STREAM", statement), *_columns(statement.columns), "AS", _text(statement.query)]
    )


@_text.register
def _(statement: DeclareStream) -> str:
    return " ".join(
        [_create("STREAM", statement), *_columns(statement.columns), *_options(statement.options)]
    )


@_text.register
def _(statement: CreateSource) -> str:
    return " ".join(
        [_create("SOURCE", statement), *_columns(statement.columns), *_options(statement.options)]
    )


@_text.register
def _(statement: CreateSink) -> str:
    if statement.query is not None:
        both = msgspec.structs.replace(
            statement.query,
            options=tuple(
                sorted((*statement.options, *statement.query.options), key=lambda option: option.name)
            ),
        )
        return " ".join([_create("SINK", statement), "AS", _text(both)])
    return " ".join(
        [_create("SINK", statement), "FROM", dotted_text(statement.stream), *_options(statement.options)]
    )


@_text.register
def _(statement: Insert) -> str:
    rows = ", ".join(f"({', '.join(map(expression_text, row))})" for row in statement.rows)
    return f"INSERT INTO {dotted_text(statement.name)} VALUES {rows}"  # noqa: S608 - for display, and checked


@_text.register
def _(statement: Drop) -> str:
    if_exists = "IF EXISTS " if statement.if_exists else ""
    cascade = " CASCADE" if statement.cascade else ""
    return f"DROP {statement.object} {if_exists}{dotted_text(statement.name)}{cascade}"


@_text.register
def _(statement: ControlJob) -> str:
    return f"{statement.action} JOB {dotted_text(statement.name)}"


@_text.register
def _(statement: Show) -> str:
    return f"SHOW {statement.what}"


@_text.register
def _(statement: Describe) -> str:
    return f"DESCRIBE {'EXTENDED ' if statement.extended else ''}{dotted_text(statement.name)}"


@_text.register
def _(statement: Explain) -> str:
    return f"EXPLAIN {_text(statement.statement)}"


def _create(what: str, statement: CreateStream | DeclareStream | CreateSource | CreateSink) -> str:
    return f"CREATE {'OR REPLACE ' if statement.replace else ''}{what} {dotted_text(statement.name)}"


def _columns(columns: tuple[Column, ...]) -> list[str]:
    named = ", ".join(f"{name_text(column.name)} {type_text(column.type)}" for column in columns)
    return [f"({named})"] if columns else []


def _options(options: tuple[Option, ...]) -> list[str]:
    given = ", ".join(f"{name_text(option.name)} = {quoted(option.value)}" for option in options)
    return [f"WITH ({given})"] if options else []


def _item(item: Item | Star) -> str:
    if isinstance(item, Star):
        return "*"
    name = "" if item.name is None else f" AS {name_text(item.name)}"
    return expression_text(item.expression) + name


def _window(window: Window) -> str:
    if window.kind in COUNTED:
        sizes = [str(size) for size in (window.size, window.step) if size is not None]
    else:
        sizes = [duration_text(size) for size in (window.size, window.step) if size is not None]
    time = [] if window.time is None else [expression_text(window.time)]
    return f"{window.kind}({', '.join(time + sizes)})"
