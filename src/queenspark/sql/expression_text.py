"""Expressions as text, with minimal parentheses."""

from __future__ import annotations

from functools import singledispatch

from ..formats.sql_words import name_text
from .duration import interval_text
from .strings import quoted
from .tree import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    DistinctFrom,
    In,
    Index,
    Is,
    Like,
    Literal,
    Node,
    Over,
    Path,
    TypeName,
    Unary,
)

_OR, _AND, _NOT, _PREDICATE, _COMPARISON, _SUM, _PRODUCT, _SIGN, _VALUE = range(9)
_LEVELS = {
    "OR": _OR,
    "AND": _AND,
    "+": _SUM,
    "-": _SUM,
    "||": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
    "DIV": _PRODUCT,
}
_SUFFIXES = {"bigint": "L", "smallint": "S", "tinyint": "Y", "double": "D", "float": "F", "decimal": "BD"}


def expression_text(node: Node) -> str:
    """The text of an expression."""
    return _write(node)[1]


def type_text(type_name: TypeName) -> str:
    """The text of a type."""
    if type_name.element is not None:
        return f"{type_name.name}<{type_text(type_name.element)}>"
    numbers = ", ".join(map(str, type_name.numbers))
    return f"{type_name.name}({numbers})" if numbers else type_name.name


def _at(node: Node, level: int) -> str:
    """Format a node as an operand that binds at least this tightly."""
    own, text = _write(node)
    return text if own >= level else f"({text})"


@singledispatch
def _write(node: object) -> tuple[int, str]:
    raise TypeError(f"{type(node).__name__} is not an expression")


@_write.register
def _(node: Literal) -> tuple[int, str]:
    if node.kind == "string":
        return _VALUE, quoted(node.text)
    if node.kind in ("date", "timestamp"):
        return _VALUE, f"{node.kind.upper()} {quoted(node.text)}"
    if node.kind == "interval":
        return _VALUE, interval_text(int(node.text))
    suffix = _SUFFIXES.get(node.kind, "")
    if (node.kind == "double" and "e" in node.text) or (
        node.kind == "decimal" and "." in node.text and "e" not in node.text
    ):
        suffix = ""
    return _SIGN if node.text.startswith("-") else _VALUE, node.text + suffix


@_write.register
def _(node: Path) -> tuple[int, str]:
    text = name_text(str(node.steps[0]))
    for step in node.steps[1:]:
        text += f"[{step}]" if isinstance(step, int) else f".{name_text(step)}" if step else "['']"
    return _VALUE, text


@_write.register
def _(node: Unary) -> tuple[int, str]:
    if node.operator == "NOT":
        return _NOT, f"NOT {_at(node.operand, _NOT)}"
    operand = _at(node.operand, _SIGN)
    # `-1` is a literal, and `--` starts a comment.
    if operand[0] in "+-0123456789.":
        operand = f"({operand})"
    return _SIGN, node.operator + operand


@_write.register
def _(node: Binary) -> tuple[int, str]:
    level = _LEVELS.get(node.operator, _COMPARISON)
    return level, f"{_at(node.left, level)} {node.operator} {_at(node.right, level + 1)}"


@_write.register
def _(node: Is) -> tuple[int, str]:
    return _PREDICATE, f"{_at(node.operand, _COMPARISON)} IS {'NOT ' if node.negated else ''}{node.what}"


@_write.register
def _(node: DistinctFrom) -> tuple[int, str]:
    negated = "NOT " if node.negated else ""
    return (
        _PREDICATE,
        f"{_at(node.left, _COMPARISON)} IS {negated}DISTINCT FROM {_at(node.right, _COMPARISON)}",
    )


@_write.register
def _(node: In) -> tuple[int, str]:
    items = ", ".join(map(expression_text, node.items))
    return _PREDICATE, f"{_at(node.operand, _COMPARISON)} {_not(node.negated)}IN ({items})"


@_write.register
def _(node: Between) -> tuple[int, str]:
    low, high = _at(node.low, _COMPARISON), _at(node.high, _COMPARISON)
    return _PREDICATE, f"{_at(node.operand, _COMPARISON)} {_not(node.negated)}BETWEEN {low} AND {high}"


@_write.register
def _(node: Like) -> tuple[int, str]:
    escape = "" if node.escape is None else f" ESCAPE {quoted(node.escape)}"
    operand, pattern = _at(node.operand, _COMPARISON), _at(node.pattern, _COMPARISON)
    return _PREDICATE, f"{operand} {_not(node.negated)}{node.operator} {pattern}{escape}"


@_write.register
def _(node: Case) -> tuple[int, str]:
    parts = ["CASE"]
    if node.operand is not None:
        parts.append(expression_text(node.operand))
    for when in node.whens:
        parts += ["WHEN", expression_text(when.condition), "THEN", expression_text(when.value)]
    if node.otherwise is not None:
        parts += ["ELSE", expression_text(node.otherwise)]
    return _VALUE, " ".join([*parts, "END"])


@_write.register
def _(node: Cast) -> tuple[int, str]:
    name = "TRY_CAST" if node.trying else "CAST"
    return _VALUE, f"{name}({expression_text(node.operand)} AS {type_text(node.to)})"


@_write.register
def _(node: Index) -> tuple[int, str]:
    operand = _at(node.operand, _VALUE)
    if isinstance(node.operand, Path) and isinstance(node.index, Literal):
        operand = f"({operand})"  # otherwise it would be a step of the path
    return _VALUE, f"{operand}[{expression_text(node.index)}]"


@_write.register
def _(node: Call) -> tuple[int, str]:
    arguments = "*" if node.star else ", ".join(map(expression_text, node.arguments))
    text = f"{node.name}({'DISTINCT ' if node.distinct else ''}{arguments})"
    if node.ignore_nulls:
        text += " IGNORE NULLS"
    if node.where is not None:
        text += f" FILTER (WHERE {expression_text(node.where)})"
    return _VALUE, text + ("" if node.over is None else _over(node.over))


def _over(over: Over) -> str:
    keys = ", ".join(map(expression_text, over.partition_by))
    return f" OVER (ROWS WINDOW BUFFER {over.rows} ROWS{f' PARTITION BY {keys}' if keys else ''})"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""
