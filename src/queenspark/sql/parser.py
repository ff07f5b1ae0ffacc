"""Parses statements. Every token belongs to a statement, or the text is rejected."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from . import options
from .cursor import Cursor
from .expression_parser import expressions
from .select import select
from .source import Span
from .statements import (
    Column,
    ControlJob,
    CreateSink,
    CreateSource,
    CreateStream,
    Creation,
    DeclareStream,
    Describe,
    Drop,
    Explain,
    Insert,
    Option,
    Select,
    Show,
    Statement,
)
from .tokens import Kind
from .tree import Node, TypeName
from .type_parser import type_name

_OBJECTS = ("STREAM", "SOURCE", "SINK")
_SHOWN = ("STREAMS", "SOURCES", "SINKS", "JOBS", "QUEUES", "FUNCTIONS")


def parse(text: str) -> list[Statement]:
    """Parse the statements of a text, separated by semicolons. Raises SqlError."""
    cursor = Cursor(text)
    found: list[Statement] = []
    while not cursor.at(Kind.END):
        if cursor.takes(";"):
            continue
        found.append(_statement(cursor))
        if not cursor.at(Kind.END) and not cursor.sees(";"):
            raise cursor.expected("; or the end of the statement")
    return found


def parse_one(text: str) -> Statement:
    """Parse the only statement of a text. Raises SqlError."""
    found = parse(text)
    if len(found) != 1:
        raise Span(1, 1).error(f"expected one statement, found {len(found)}")
    return found[0]


def parse_expression(text: str) -> Node:
    """Parse a single expression, as in a stream's definition. Raises SqlError."""
    cursor = Cursor(text)
    found = expressions(cursor)
    if len(found) > 1 or not cursor.at(Kind.END):
        raise (
            cursor.expected("the end of the expression")
            if len(found) == 1
            else found[1].span.error("expected one expression, found several")
        )
    return found[0]


def parse_type(text: str) -> TypeName:
    """Parse a single type. Raises SqlError."""
    cursor = Cursor(text)
    found = type_name(cursor)
    if not cursor.at(Kind.END):
        raise cursor.expected("the end of the type")
    return found


def _statement(cursor: Cursor) -> Statement:
    parsers: dict[str, Callable[[Cursor], Statement]] = {
        "SELECT": lambda c: select(c, limit=True),
        "CREATE": _create,
        "INSERT": _insert,
        "DROP": _drop,
        "PAUSE": _control,
        "RESUME": _control,
        "RESTART": _control,
        "SHOW": _show,
        "DESCRIBE": _describe,
        "EXPLAIN": _explain,
    }
    if cursor.at(Kind.WORD) and cursor.token.upper in parsers:
        return parsers[cursor.token.upper](cursor)
    raise cursor.expected(f"a statement ({', '.join(parsers)})", parsers)


def _create(cursor: Cursor) -> Creation:
    span = cursor.span
    cursor.expect("CREATE")
    replace = cursor.sees("OR")
    if replace:
        cursor.expect("OR", "REPLACE")
    what = cursor.choice(_OBJECTS, "an object type to create")
    name = cursor.dotted_name(f"the name of the {what.lower()}")
    if what == "SINK":
        return _sink(cursor, name, span, replace=replace)
    columns = _columns(cursor) if cursor.sees("(") else ()
    if what == "SOURCE":
        if not columns and not cursor.sees("WITH"):
            raise cursor.expected("the columns of the source, or WITH and its options", ["WITH"])
        given = options.connector_options(_with(cursor), options.SOURCES, "a source", span)
        return CreateSource(name=name, columns=columns, options=given, replace=replace, span=span)
    if cursor.takes("AS"):
        return CreateStream(
            name=name, columns=columns, query=select(cursor, limit=False), replace=replace, span=span
        )
    if not columns:
        raise cursor.expected("AS and a query, or the columns of the stream", ["AS"])
    if not cursor.sees("WITH"):
        raise cursor.expected("AS and a query, or WITH (queue = '…')", ["AS", "WITH"])
    return DeclareStream(name=name, columns=columns, options=_queues(cursor), replace=replace, span=span)


def _sink(cursor: Cursor, name: str, span: Span, *, replace: bool) -> CreateSink:
    if cursor.takes("AS"):
        query = select(cursor, limit=False, checked=False)
        # One WITH has the options of both the sink and the query.
        own, others = options.divided(query.options, options.SINKS)
        given = options.connector_options(own, options.SINKS, "a sink", span)
        query = msgspec.structs.replace(query, options=options.checked(others, options.JOB, "a query"))
        return CreateSink(name=name, query=query, options=given, replace=replace, span=span)
    if not cursor.sees("FROM"):
        raise cursor.expected("FROM and a stream, or AS and a query", ["FROM", "AS"])
    cursor.expect("FROM")
    stream_span = cursor.span
    stream = cursor.dotted_name("the name of a stream")
    given = options.connector_options(_with(cursor), options.STREAM_SINKS, "a sink", span)
    return CreateSink(
        name=name, stream=stream, stream_span=stream_span, options=given, replace=replace, span=span
    )


def _with(cursor: Cursor) -> tuple[Option, ...]:
    cursor.expect("WITH")
    return options.options(cursor)


def _queues(cursor: Cursor) -> tuple[Option, ...]:
    span = cursor.span
    given = options.checked(_with(cursor), options.STREAM, "a stream over queues")
    if len(given) != 1:
        raise span.error("a stream over queues needs either queue = 'name' or queues = 'a, b'")
    return given


def _columns(cursor: Cursor) -> tuple[Column, ...]:
    found: list[Column] = []
    cursor.expect("(")
    while True:
        span = cursor.span
        name = cursor.name("the name of a column")
        if any(column.name.lower() == name.lower() for column in found):
            raise span.error(f"the column {name} is declared twice; names are case-insensitive")
        if name.startswith("_"):
            raise span.error(
                f"the column {name} starts with an underscore, which is reserved for pseudo-columns"
            )
        found.append(Column(name=name, type=type_name(cursor), span=span))
        if not cursor.takes(","):
            break
    cursor.expect(")")
    return tuple(found)


def _insert(cursor: Cursor) -> Insert:
    span = cursor.span
    cursor.expect("INSERT", "INTO")
    name = cursor.dotted_name("the name of a stream")
    if cursor.sees("("):
        raise cursor.error("remove the column list: VALUES needs a value for each declared column, in order")
    cursor.expect("VALUES")
    rows = [_row(cursor)]
    while cursor.takes(","):
        at = cursor.span
        rows.append(_row(cursor))
        if len(rows[-1]) != len(rows[0]):
            raise at.error(f"this row has {len(rows[-1])} values and the first has {len(rows[0])}")
    return Insert(name=name, rows=tuple(rows), span=span)


def _row(cursor: Cursor) -> tuple[Node, ...]:
    cursor.expect("(")
    row = expressions(cursor)
    cursor.expect(")")
    return row


def _drop(cursor: Cursor) -> Drop:
    span = cursor.span
    cursor.expect("DROP")
    what = cursor.choice(_OBJECTS, "an object type to drop")
    if_exists = cursor.takes("IF", "EXISTS")
    name = cursor.dotted_name(f"the name of the {what.lower()}")
    return Drop(object=what, name=name, if_exists=if_exists, cascade=cursor.takes("CASCADE"), span=span)  # type: ignore[arg-type]


def _control(cursor: Cursor) -> ControlJob:
    span, action = cursor.span, cursor.next().upper
    cursor.expect("JOB")
    return ControlJob(action=action, name=cursor.dotted_name("the name of the job"), span=span)  # type: ignore[arg-type]


def _show(cursor: Cursor) -> Show:
    span = cursor.span
    cursor.expect("SHOW")
    return Show(what=cursor.choice(_SHOWN, "objects to show"), span=span)  # type: ignore[arg-type]


def _describe(cursor: Cursor) -> Describe:
    span = cursor.span
    cursor.expect("DESCRIBE")
    extended = cursor.sees("EXTENDED") and cursor.after().kind in (Kind.WORD, Kind.QUOTED)
    if extended:
        cursor.next()
    return Describe(extended=extended, name=cursor.dotted_name("the name to describe"), span=span)


def _explain(cursor: Cursor) -> Explain:
    span = cursor.span
    cursor.expect("EXPLAIN")
    statement: Select | Creation
    if cursor.sees("SELECT"):
        statement = select(cursor, limit=True)
    elif cursor.sees("CREATE"):
        statement = _create(cursor)
    else:
        raise cursor.expected("SELECT or CREATE after EXPLAIN", ["SELECT", "CREATE"])
    return Explain(statement=statement, span=span)
