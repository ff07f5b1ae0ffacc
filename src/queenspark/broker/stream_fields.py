"""The fields of a definition that are SQL: parsed, and named in errors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ..sql import Relation, SqlError, parse_expression
from ..sql.expression_text import expression_text
from ..sql.source import Span
from ..sql.tree import Between, Binary, In, Literal, Node, Path, Unary
from ..sql.types import JSON
from .errors import ApiError, bad_request

MOST_TEXT = 10_000
"""Maximum length of an expression."""

_NUMBERS = ("integer", "bigint", "smallint", "tinyint", "decimal", "double", "float")


class Fields:
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
        if len(text) > MOST_TEXT:
            raise Span(line, 1).error(f"has {len(text)} characters; the limit is {MOST_TEXT}")
        node = parse_expression("\n" * (line - 1) + text)
        self._nodes[-1] = node
        return node

    def write_out(self, node: Node) -> None:
        """Take the hints about the last expression from another form of it."""
        self._nodes[-1] = node

    def refusal(self, error: SqlError, relation: Relation | None) -> ApiError:
        """Convert an error to 400 with the name of the field, and a hint if a type is unknown."""
        number = bisect_right(self._lines, error.line) - 1
        name, node = self._names[number], self._nodes[number]
        unknown = None if node is None or relation is None else next(_unknown_paths(node, relation), None)
        hint = "" if unknown is None or relation is None else f"; {_cast_hint(unknown, relation)}"
        return bad_request(f"{name}: {error.message}{hint}" if name else error.message)

    def _begin(self, name: str, lines: int) -> int:
        line, self._next = self._next, self._next + lines
        self._lines.append(line)
        self._names.append(name)
        self._nodes.append(None)
        return line


def check_comparisons(node: Node, relation: Relation) -> None:
    """Reject the comparison of a path of unknown type with a number. Raises SqlError.

    It would cast text to the number's type, and fail on other text.
    """
    for each in node.walk():
        if isinstance(each, Binary | Between | In) and any(map(_is_number, each.children())):
            for path in each.children():
                if isinstance(path, Path) and _is_unknown(path, relation):
                    raise path.span.error(f"{expression_text(path)} is compared with a number")


def _is_number(node: Node) -> bool:
    operand = node.operand if isinstance(node, Unary) else node
    return isinstance(operand, Literal) and operand.kind in _NUMBERS


def _is_unknown(path: Path, relation: Relation) -> bool:
    """Whether a payload path occurs in no sampled message."""
    first, *rest = path.steps
    if relation.columns is not None or first not in ("data", "payload") or not rest:
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
