"""Compiles expressions to polars: a value and an error for each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

from ..errors import did_you_mean
from ..expression_text import expression_text
from ..tree import (
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
    Path,
    Unary,
)
from ..types import from_name
from . import registry
from .arithmetic import arithmetic, negative
from .arrays import element
from .casts import cast
from .comparison import between, comparison, membership
from .compiled import Argument, Compiled
from .conditional import choice
from .literals import literal
from .logic import conjunction, disjunction, is_test, negation
from .program import Program
from .text import concat, like

#: Resolves a path; raises SqlError for an unknown one.
Resolve = Callable[[Path], Compiled]
#: Overrides the compilation of a node: an aggregate, or an expression in GROUP BY.
Special = Callable[[Node], Compiled | None]


class _Scope:
    def __init__(self, resolve: Resolve, program: Program, special: Special | None) -> None:
        self.resolve = resolve
        self.program = program
        self.special = special


def compile_expression(
    node: Node, resolve: Resolve, program: Program, special: Special | None = None
) -> Compiled:
    """Compile an expression; its value is available once the program was applied to a frame.

    Raises SqlError for unknown names and mismatched types.
    """
    return _compile(node, _Scope(resolve, program, special))


def _compile(node: Node, scope: _Scope) -> Compiled:
    found = scope.special(node) if scope.special is not None else None
    if found is not None:
        return found
    if isinstance(node, Literal | Path):
        return _plain(node, scope)
    text = expression_text(node)
    known = scope.program.known(text)
    return scope.program.bind(text, _plain(node, scope)) if known is None else known


@singledispatch
def _plain(node: object, scope: _Scope) -> Compiled:
    raise TypeError(f"{type(node).__name__} is not an expression")


@_plain.register
def _(node: Literal, scope: _Scope) -> Compiled:
    return literal(node)


@_plain.register
def _(node: Path, scope: _Scope) -> Compiled:
    return scope.resolve(node)


@_plain.register
def _(node: Unary, scope: _Scope) -> Compiled:
    operand = _compile(node.operand, scope)
    if node.operator == "NOT":
        return negation(operand, node.operand.span)
    if node.operator == "-":
        return negative(operand, node.span)
    if not operand.type.is_numeric:
        raise node.span.error(f"+ needs a number, found {operand.type}; use CAST")
    return operand._replace(literal=None)


@_plain.register
def _(node: Binary, scope: _Scope) -> Compiled:
    left, right = _compile(node.left, scope), _compile(node.right, scope)
    match node.operator:
        case "AND":
            return conjunction(left, right, node.span)
        case "OR":
            return disjunction(left, right, node.span)
        case "||":
            return concat(Argument(left, node.left.span), Argument(right, node.right.span))
        case "+" | "-" | "*" | "/" | "%" | "DIV":
            return arithmetic(node.operator, left, right, node.span)
    return comparison(node.operator, left, right, node.span)


@_plain.register
def _(node: Is, scope: _Scope) -> Compiled:
    return is_test(_compile(node.operand, scope), node.what, node.span, negated=node.negated)


@_plain.register
def _(node: DistinctFrom, scope: _Scope) -> Compiled:
    same = comparison("<=>", _compile(node.left, scope), _compile(node.right, scope), node.span)
    return same if node.negated else negation(same, node.span)


@_plain.register
def _(node: In, scope: _Scope) -> Compiled:
    items = [_compile(item, scope) for item in node.items]
    return membership(_compile(node.operand, scope), items, node.span, negated=node.negated)


@_plain.register
def _(node: Between, scope: _Scope) -> Compiled:
    operand, low, high = (_compile(each, scope) for each in (node.operand, node.low, node.high))
    return between(operand, low, high, node.span, negated=node.negated)


@_plain.register
def _(node: Like, scope: _Scope) -> Compiled:
    text = Argument(_compile(node.operand, scope), node.operand.span)
    pattern = Argument(_compile(node.pattern, scope), node.pattern.span)
    found = like(node.operator, text, pattern, node.escape)
    return negation(found, node.span) if node.negated else found


@_plain.register
def _(node: Case, scope: _Scope) -> Compiled:
    operand = None if node.operand is None else _compile(node.operand, scope)
    branches = []
    for when in node.whens:
        condition = _compile(when.condition, scope)
        if operand is not None:
            condition = comparison("=", operand, condition, when.condition.span)
        branches.append((condition, _compile(when.value, scope)))
    otherwise = None if node.otherwise is None else _compile(node.otherwise, scope)
    return choice(branches, otherwise, node.span)


@_plain.register
def _(node: Cast, scope: _Scope) -> Compiled:
    return cast(_compile(node.operand, scope), from_name(node.to), node.to.span, trying=node.trying)


@_plain.register
def _(node: Index, scope: _Scope) -> Compiled:
    return element(_compile(node.operand, scope), _compile(node.index, scope), node.span)


@_plain.register
def _(node: Call, scope: _Scope) -> Compiled:
    function = registry.find(node.name)
    if function is None:
        if node.name == "EXPLODE":
            raise node.span.error(
                "EXPLODE cannot be part of an expression; select it as a column: EXPLODE(array) AS name"
            )
        hint = did_you_mean(node.name, [*registry.FUNCTIONS, *registry.ALIASES])
        raise node.span.error(f"there is no function {node.name}{hint or '; SHOW FUNCTIONS lists them'}")
    for wrong, what in (
        (node.distinct, "DISTINCT"),
        (node.where, "FILTER"),
        (node.ignore_nulls, "IGNORE NULLS"),
        (node.over, "OVER"),
    ):
        if wrong:
            raise node.span.error(f"{what} is only for aggregates, and {node.name} is not one")
    count = len(node.arguments)
    if count < function.least or (function.most is not None and count > function.most):
        raise node.span.error(f"{node.name} has {count} arguments; write {function.signature}")
    return function.compile(*(Argument(_compile(each, scope), each.span) for each in node.arguments))
