"""The computation of a stream: a query built from the expressions of its definition."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..formats.definition import StreamDefinition
from ..formats.window_message import GLOBAL
from ..sql import Relation, SqlError, freeze, parse_expression, thaw
from ..sql.duration import duration_text
from ..sql.expression_parser import MOST_ROWS
from ..sql.expression_text import expression_text
from ..sql.options import JOB, checked
from ..sql.planning.catalogue import OneRelation
from ..sql.source import Span
from ..sql.statements import COUNTED, Item, Option, Select, Window, WindowKind
from ..sql.tree import Between, Binary, In, Literal, Node, Path, Unary
from ..sql.types import JSON
from ..sql.window_parser import MOST_RECORDS
from ..store.names import MOST_NAME
from ..windows.event_time import steps
from .broker import Broker
from .errors import ApiError, bad_request
from .http import Caller
from .sql.catalogue import BrokerCatalogue

_MOST_TEXT = 10_000
_MOST_EXPRESSIONS = 100
_NUMBERS = ("integer", "bigint", "smallint", "tinyint", "decimal", "double", "float")
_KINDS: dict[str, WindowKind] = {
    "tumbling": "TUMBLING", "sliding": "SLIDING", "session": "SESSION", "count": "COUNT", "rows": "ROWS",
}  # fmt: skip


class Computed(NamedTuple):
    """A stored query, and its source expressions in canonical form."""

    query: dict[str, Any]
    key: tuple[str, ...]
    where: str | None
    aggregates: dict[str, str]
    having: str | None


async def computed(broker: Broker, request: StreamDefinition, caller: Caller) -> Computed:
    """Plan a definition against its current queues; raise 400 with the field's name."""
    _check(request)
    queues = list(dict.fromkeys(request.source_queue_names))
    async with broker.store.jobs.reading() as reading:
        relation = await BrokerCatalogue(reading, caller).messages(queues)
    expressions = _Expressions(request, relation)
    # Planning takes milliseconds; keep the event loop free.
    return await asyncio.to_thread(expressions.planned)


def _check(request: StreamDefinition) -> None:
    if request.key and request.partitioned:
        raise bad_request(
            "partitioned and key cannot be combined: remove partitioned, and add _partition to key"
            " if it should be part of it"
        )
    most = MOST_ROWS if request.window_type == "rows" else MOST_RECORDS
    if (request.window_size_count or 0) > most:
        raise bad_request(f"window_size_count is {request.window_size_count}; the limit is {most}")
    for name, given in (("key", request.key), ("aggregates", request.aggregates)):
        if len(given) > _MOST_EXPRESSIONS:
            raise bad_request(f"{name} has {len(given)} expressions; the limit is {_MOST_EXPRESSIONS}")
    for name in request.aggregates:
        if not name or len(name) > MOST_NAME or name.startswith("_"):
            raise bad_request(
                f"aggregates: the name {name!r} must have 1 to {MOST_NAME} characters"
                " and not begin with an underscore"
            )


class _Fields:
    """The fields of a definition, each on its own lines: the line of an error identifies the field."""

    def __init__(self) -> None:
        self._lines = [1]
        self._names = [""]
        self._nodes: list[Node | None] = [None]
        self._next = 2

    def span(self, name: str) -> Span:
        """Return a span for errors about a field that is not an expression."""
        return Span(self._begin(name, 1), 1)

    def expression(self, name: str, text: str) -> Node:
        """Parse the expression of a field. Raises SqlError."""
        line = self._begin(name, text.count("\n") + 1)
        if len(text) > _MOST_TEXT:
            raise Span(line, 1).error(f"has {len(text)} characters; the limit is {_MOST_TEXT}")
        node = parse_expression("\n" * (line - 1) + text)
        self._nodes[-1] = node
        return node

    def refusal(self, error: SqlError, relation: Relation) -> ApiError:
        """Convert an error to 400 with the name of the field, and a hint if a type is unknown."""
        number = bisect_right(self._lines, error.line) - 1
        name, node = self._names[number], self._nodes[number]
        unknown = next(_unknown_paths(node, relation), None) if node is not None else None
        hint = "" if unknown is None else f"; {_cast_hint(unknown, relation)}"
        return bad_request(f"{name}: {error.message}{hint}" if name else error.message)

    def _begin(self, name: str, lines: int) -> int:
        line, self._next = self._next, self._next + lines
        self._lines.append(line)
        self._names.append(name)
        self._nodes.append(None)
        return line


class _Expressions:
    """The expressions of a definition over the messages of its sources."""

    def __init__(self, request: StreamDefinition, relation: Relation) -> None:
        self._request = request
        self._relation = relation
        self._fields = _Fields()

    def planned(self) -> Computed:
        """Validate and plan them."""
        try:
            return self._planned()
        except SqlError as error:
            raise self._fields.refusal(error, self._relation) from error

    def _planned(self) -> Computed:
        request, parse = self._request, self._parsed
        key = [parse(f"key[{number}]", text) for number, text in enumerate(request.key)]
        where = None if request.where is None else parse("where", request.where)
        aggregates = {name: parse(f"aggregates.{name}", text) for name, text in request.aggregates.items()}
        having = None if request.having is None else parse("having", request.having)
        query = Select(
            # Columns with an underscore are not aggregates of the window.
            items=tuple(Item(expression=node, name=name, span=node.span) for name, node in aggregates.items())
            or (Item(expression=Path(steps=("_count",)), name="_count"),),
            source="messages",
            # No payload field has this name, so no path starts with it by accident.
            alias="_message",
            where=where,
            group_by=tuple(key) or (self._whole_key(),),
            window=self._window(),
            having=having,
            emit="CHANGES" if request.emit == "changes" and request.window_type != "rows" else None,
            emit_span=self._fields.span("emit"),
            options=self._options(),
            source_span=self._fields.span("source_queue_names"),
            span=self._fields.span("aggregates"),
        )
        frozen = freeze(query, OneRelation(self._relation), "windows")
        thaw(frozen)
        return Computed(
            frozen,
            tuple(map(expression_text, key)),
            None if where is None else expression_text(where),
            {name: expression_text(node) for name, node in aggregates.items()},
            None if having is None else expression_text(having),
        )

    def _parsed(self, name: str, text: str) -> Node:
        node = self._fields.expression(name, text)
        for each in node.walk():
            # Comparison with a number would cast text to the number's type, and fail on other text.
            if isinstance(each, Binary | Between | In) and any(map(_is_number, each.children())):
                for path in each.children():
                    if isinstance(path, Path) and _is_unknown(path, self._relation):
                        raise path.span.error(f"{expression_text(path)} is compared with a number")
        return node

    def _whole_key(self) -> Node:
        """The key of streams without key expressions: the partition, or a global one."""
        if self._request.partitioned:
            return Path(steps=("_partition",))
        return Literal(kind="string", text=GLOBAL)

    def _window(self) -> Window:
        request = self._request
        kind = _KINDS[request.window_type]
        sizes = {
            "TUMBLING": (request.window_duration_ms, None),
            "SLIDING": (request.window_duration_ms, request.window_slide_ms),
            "SESSION": (request.window_gap_ms, None),
            "COUNT": (request.window_size_count, request.window_slide_count),
            "ROWS": (request.window_size_count, None),
        }[kind]
        size, step = (None if each is None else each if kind in COUNTED else each * 1000 for each in sizes)
        time = None
        if request.event_time is not None:
            path = [int(each) if each.isdigit() else each for each in steps(request.event_time)]
            time = Path(steps=("data", *path), span=self._fields.span("event_time"))
        span = self._fields.span("window_type")
        return Window(kind=kind, size=size or 0, step=step, time=time, span=span)

    def _options(self) -> tuple[Option, ...]:
        request = self._request
        if _KINDS[request.window_type] in COUNTED:
            return ()
        durations = {"grace": ("window_grace_period_ms", request.window_grace_period_ms)}
        if request.event_time is not None and request.idle_timeout_ms is not None:
            durations["idle_timeout"] = ("idle_timeout_ms", request.idle_timeout_ms)
        given = [
            Option(name=name, value=duration_text(value * 1000), span=self._fields.span(field))
            for name, (field, value) in durations.items()
        ]
        given.append(Option(name="late", value=request.late, span=self._fields.span("late")))
        if request.emit_empty:
            given.append(Option(name="emit_empty", value="true", span=self._fields.span("emit_empty")))
        return checked(tuple(given), JOB, "a stream")


def _is_number(node: Node) -> bool:
    operand = node.operand if isinstance(node, Unary) else node
    return isinstance(operand, Literal) and operand.kind in _NUMBERS


def _is_unknown(path: Path, relation: Relation) -> bool:
    """Whether a payload path occurs in no sampled message."""
    first, *rest = path.steps
    if first not in ("data", "payload") or not rest:
        return False
    found = (relation.paths.get(tuple(rest[:size])) for size in range(1, len(rest)))
    return tuple(rest) not in relation.paths and JSON not in found


def _unknown_paths(node: Node, relation: Relation) -> Iterator[Path]:
    return (each for each in node.walk() if isinstance(each, Path) and _is_unknown(each, relation))


def _cast_hint(path: Path, relation: Relation) -> str:
    text = expression_text(path)
    return (
        f"no recent message of {relation.name} has {text}, so its type is unknown:"
        f" specify it, for example CAST({text} AS DOUBLE)"
    )
