"""Expression trees. Nodes have a source location, which equality ignores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from typing import Literal as Choice

import msgspec

from .source import NOWHERE, Span

LiteralKind = Choice[
    "null", "boolean", "integer", "bigint", "smallint", "tinyint", "decimal", "double", "float", "string",
    "date", "timestamp", "interval",
]  # fmt: skip


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an expression."""

    span: Span = NOWHERE

    def children(self) -> Iterator[Node]:
        """The direct children."""
        for name in self.__struct_fields__:
            yield from _nodes(getattr(self, name))

    @property
    def start(self) -> Span:
        """The start of the expression; the `span` of an operation is its operator."""
        return min((node.span for node in self.walk()), key=lambda span: (span.line, span.column))

    def walk(self) -> Iterator[Node]:
        """This node and all its descendants."""
        todo: list[Node] = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(node.children())


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _nodes(each)


class Literal(Node, frozen=True, kw_only=True):
    """A constant. `text` is its value as it was written, without quotes and suffix."""

    kind: LiteralKind
    text: str


class Path(Node, frozen=True, kw_only=True):
    """A name with its steps: `a.b[0]` is ("a", "b", 0)."""

    steps: tuple[str | int, ...]


class Unary(Node, frozen=True, kw_only=True):
    """NOT, or a sign."""

    operator: Choice["NOT", "-", "+"]
    operand: Node


class Binary(Node, frozen=True, kw_only=True):
    """An operator between two operands."""

    operator: str
    left: Node
    right: Node


class Is(Node, frozen=True, kw_only=True):
    """`x IS [NOT] NULL | TRUE | FALSE`."""

    operand: Node
    what: Choice["NULL", "TRUE", "FALSE"]
    negated: bool = False


class DistinctFrom(Node, frozen=True, kw_only=True):
    """`x IS [NOT] DISTINCT FROM y`."""

    left: Node
    right: Node
    negated: bool = False


class In(Node, frozen=True, kw_only=True):
    """`x [NOT] IN (…)`."""

    operand: Node
    items: tuple[Node, ...]
    negated: bool = False


class Between(Node, frozen=True, kw_only=True):
    """`x [NOT] BETWEEN low AND high`."""

    operand: Node
    low: Node
    high: Node
    negated: bool = False


class Like(Node, frozen=True, kw_only=True):
    """`x [NOT] LIKE | ILIKE | RLIKE pattern [ESCAPE c]`."""

    operator: Choice["LIKE", "ILIKE", "RLIKE"]
    operand: Node
    pattern: Node
    escape: str | None = None
    negated: bool = False


class When(Node, frozen=True, kw_only=True):
    """A branch of CASE."""

    condition: Node
    value: Node


class Case(Node, frozen=True, kw_only=True):
    """`CASE [operand] WHEN … THEN … [ELSE …] END`."""

    operand: Node | None
    whens: tuple[When, ...]
    otherwise: Node | None


class TypeName(msgspec.Struct, frozen=True, kw_only=True):
    """A type as written: DECIMAL(10, 2), ARRAY<STRING>."""

    name: str
    numbers: tuple[int, ...] = ()
    element: TypeName | None = None
    span: Span = NOWHERE


class Cast(Node, frozen=True, kw_only=True):
    """`CAST(x AS type)`, or TRY_CAST, which returns NULL where CAST fails."""

    operand: Node
    to: TypeName
    trying: bool = False


class Index(Node, frozen=True, kw_only=True):
    """`x[i]` of an expression that is not a path."""

    operand: Node
    index: Node


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """`OVER (ROWS WINDOW BUFFER n ROWS [PARTITION BY …])`."""

    rows: int
    partition_by: tuple[Node, ...] = ()
    span: Span = NOWHERE


class Call(Node, frozen=True, kw_only=True):
    """A function call. The name is in upper case; `star` is COUNT(*)."""

    name: str
    arguments: tuple[Node, ...] = ()
    star: bool = False
    distinct: bool = False
    ignore_nulls: bool = False
    where: Node | None = None
    over: Over | None = None

    def children(self) -> Iterator[Node]:
        """The direct children, including those of OVER."""
        yield from super().children()
        if self.over is not None:
            yield from self.over.partition_by


def with_paths(node: Node, change: Callable[[Path], Node]) -> Node:
    """Return the expression with its paths replaced."""
    if isinstance(node, Path):
        return change(node)
    changed = {name: _changed(getattr(node, name), change) for name in node.__struct_fields__}
    return type(node)(**changed)


def _changed(value: Any, change: Callable[[Path], Node]) -> Any:
    if isinstance(value, Node):
        return with_paths(value, change)
    if isinstance(value, tuple):
        return tuple(_changed(each, change) for each in value)
    if isinstance(value, Over):
        return Over(rows=value.rows, partition_by=_changed(value.partition_by, change), span=value.span)
    return value


def moved(node: Node, span: Span) -> Node:
    """Return the expression with all its parts at one location."""

    def each(value: Any) -> Any:
        if isinstance(value, Span):
            return span
        if isinstance(value, tuple):
            return tuple(map(each, value))
        if isinstance(value, Node | Over):
            return type(value)(**{name: each(getattr(value, name)) for name in value.__struct_fields__})
        return value

    found: Node = each(node)
    return found


def depth(node: Node) -> int:
    """Return the depth of a tree."""
    deepest, todo = 0, [(node, 1)]
    while todo:
        each, level = todo.pop()
        deepest = max(deepest, level)
        todo.extend((child, level + 1) for child in each.children())
    return deepest
