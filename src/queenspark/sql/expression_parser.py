"""Expressions, by precedence climbing, with Spark's precedences.

From loosest to tightest: OR, AND, NOT, one predicate (IS, IN, BETWEEN, LIKE …), comparison, `+ - ||`, `* / %
DIV`, signs, and postfixes (`.name`, `[index]`).
"""

from __future__ import annotations

import re
from typing import Literal as Choice

from ..formats.sql_words import ALSO_FUNCTIONS, RESERVED
from .cursor import Cursor
from .duration import short_duration
from .source import Span
from .tokens import Kind
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
    LiteralKind,
    Node,
    Over,
    Path,
    Unary,
    When,
    depth,
)
from .type_parser import type_name

#: Maximum depth of an expression tree, for instance of a chain of ORs.
DEEPEST_TREE = 120
#: Maximum size of a ROWS buffer, in records.
MOST_ROWS = 10_000

_COMPARISONS = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
}
_SUMS = {"+": "+", "-": "-", "||": "||"}
_PRODUCTS = {"*": "*", "/": "/", "%": "%", "DIV": "DIV"}
_LEVELS = (_COMPARISONS, _SUMS, _PRODUCTS)
_SUFFIXES: dict[str, LiteralKind] = {
    "L": "bigint", "S": "smallint", "Y": "tinyint", "D": "double", "F": "float", "BD": "decimal",
}  # fmt: skip
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?([a-zA-Z]*)")
_REFUSED = {
    "&": "bitwise operators are not supported",
    "|": "bitwise operators are not supported; did you mean || or OR?",
    "^": "bitwise operators are not supported", "~": "bitwise operators are not supported",
    "::": "use CAST(x AS type)", "->": "lambda functions are not supported", ":": "write a.b for a path",
}  # fmt: skip


def expression(cursor: Cursor) -> Node:
    """Parse one expression."""
    node = _or(cursor)
    if depth(node) > DEEPEST_TREE:
        raise node.span.error(
            f"the expression is too deep; at most {DEEPEST_TREE} operators may follow each other"
        )
    if cursor.at(Kind.SYMBOL) and cursor.token.text in _REFUSED:
        raise cursor.error(f'unexpected "{cursor.token.text}"; {_REFUSED[cursor.token.text]}')
    return node


def expressions(cursor: Cursor) -> tuple[Node, ...]:
    """Parse one or more, separated by commas."""
    found = [expression(cursor)]
    while cursor.takes(","):
        found.append(expression(cursor))
    return tuple(found)


def _or(cursor: Cursor) -> Node:
    with cursor.nested():
        left = _and(cursor)
        while cursor.sees("OR"):
            span = cursor.span
            cursor.next()
            left = Binary(operator="OR", left=left, right=_and(cursor), span=span)
        return left


def _and(cursor: Cursor) -> Node:
    left = _not(cursor)
    while cursor.sees("AND"):
        span = cursor.span
        cursor.next()
        left = Binary(operator="AND", left=left, right=_not(cursor), span=span)
    return left


def _not(cursor: Cursor) -> Node:
    signs = []
    while cursor.sees("NOT") or cursor.sees("!"):
        signs.append(cursor.span)
        cursor.next()
    node = _predicate(cursor)
    for span in reversed(signs):
        node = Unary(operator="NOT", operand=node, span=span)
    return node


def _predicate(cursor: Cursor) -> Node:
    operand = _binary(cursor, 0)
    span = cursor.span
    if cursor.takes("IS"):
        return _is(cursor, operand, span)
    negated = cursor.sees("NOT") and cursor.after().upper in ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE")
    if negated:
        cursor.next()
    if cursor.takes("IN"):
        return _in(cursor, operand, span, negated=negated)
    if cursor.takes("BETWEEN"):
        low = _binary(cursor, 0)
        cursor.expect("AND")
        return Between(operand=operand, low=low, high=_binary(cursor, 0), negated=negated, span=span)
    for operator in ("LIKE", "ILIKE", "RLIKE"):
        if cursor.takes(operator):
            pattern = _binary(cursor, 0)
            escape = None
            if operator != "RLIKE" and cursor.takes("ESCAPE"):
                at = cursor.span
                escape = cursor.string("the escape character")
                if len(escape) != 1:
                    raise at.error(f"the escape character is {escape!r}; it must be one character")
            return Like(
                operator=operator, operand=operand, pattern=pattern, escape=escape, negated=negated, span=span
            )
    return operand


def _is(cursor: Cursor, operand: Node, span: Span) -> Node:
    negated = cursor.takes("NOT")
    if cursor.takes("DISTINCT"):
        cursor.expect("FROM")
        return DistinctFrom(left=operand, right=_binary(cursor, 0), negated=negated, span=span)
    what = cursor.choice(("NULL", "TRUE", "FALSE"), "a test after IS")
    return Is(operand=operand, what=what, negated=negated, span=span)  # type: ignore[arg-type]


def _in(cursor: Cursor, operand: Node, span: Span, *, negated: bool) -> Node:
    cursor.expect("(")
    _no_subquery(cursor)
    items = expressions(cursor)
    cursor.expect(")")
    return In(operand=operand, items=items, negated=negated, span=span)


def _no_subquery(cursor: Cursor) -> None:
    if cursor.sees("SELECT"):
        raise cursor.error("subqueries are not supported; create a stream for the inner query and read that")


def _binary(cursor: Cursor, level: int) -> Node:
    if level == len(_LEVELS):
        return _signed(cursor)
    left = _binary(cursor, level + 1)
    operators = _LEVELS[level]
    while cursor.token.upper in operators:
        span = cursor.span
        operator = operators[cursor.next().upper]
        left = Binary(operator=operator, left=left, right=_binary(cursor, level + 1), span=span)
    return left


def _signed(cursor: Cursor) -> Node:
    span = cursor.span
    signs: list[tuple[Choice["-", "+"], Span]] = []
    while cursor.sees("-") or cursor.sees("+"):
        minus = cursor.sees("-")
        if minus and cursor.after().kind is Kind.NUMBER:  # allows the smallest BIGINT
            cursor.next()
            node: Node = _number(cursor, span, negative=True)
            break
        signs.append(("-" if minus else "+", cursor.span))
        cursor.next()
    else:
        node = _postfix(cursor)
    for operator, at in reversed(signs):
        node = Unary(operator=operator, operand=node, span=at)
    return node


def _postfix(cursor: Cursor) -> Node:
    node = _primary(cursor)
    while cursor.sees("["):
        span = cursor.span
        cursor.next()
        index = expression(cursor)
        cursor.expect("]")
        node = Index(operand=node, index=index, span=span)
    if cursor.sees("."):
        raise cursor.error(
            "only names have fields; name the result with AS, and select its field in a second stream"
        )
    return node


def _primary(cursor: Cursor) -> Node:
    token, span = cursor.token, cursor.span
    if token.kind is Kind.NUMBER or (cursor.sees(".") and cursor.after().kind is Kind.NUMBER):
        return _number(cursor, span, negative=False)
    if token.kind is Kind.STRING:
        cursor.next()
        if cursor.at(Kind.STRING):
            raise cursor.error("two strings follow each other; join them with ||")
        return Literal(kind="string", text=token.text, span=span)
    if cursor.takes("("):
        _no_subquery(cursor)
        node = _or(cursor)
        cursor.expect(")")
        return node
    if token.kind is Kind.QUOTED:
        return _path(cursor)
    if token.kind is Kind.WORD:
        return _word(cursor)
    if cursor.sees("*"):
        raise cursor.error(
            "expected an expression, found *; * is only allowed as a column of SELECT and in COUNT(*)"
        )
    raise cursor.expected("an expression")


def _word(cursor: Cursor) -> Node:
    span, word = cursor.span, cursor.token.upper
    _no_subquery(cursor)
    if word == "NULL":
        cursor.next()
        return Literal(kind="null", text="NULL", span=span)
    if word in ("TRUE", "FALSE"):
        cursor.next()
        return Literal(kind="boolean", text=word, span=span)
    if word == "CASE":
        return _case(cursor)
    if word in ("CAST", "TRY_CAST"):
        return _cast(cursor)
    if word == "INTERVAL":
        cursor.next()
        return Literal(kind="interval", text=str(cursor.interval()), span=span)
    if word in ("DATE", "TIMESTAMP") and cursor.after().kind is Kind.STRING:
        cursor.next()
        kind: LiteralKind = "date" if word == "DATE" else "timestamp"
        return Literal(kind=kind, text=cursor.next().text, span=span)
    if (
        cursor.after().text == "("
        and cursor.after().kind is Kind.SYMBOL
        and (word not in RESERVED or word in ALSO_FUNCTIONS)
    ):
        return _call(cursor)
    return _path(cursor)


def _path(cursor: Cursor) -> Node:
    span = cursor.span
    steps: list[str | int] = [cursor.name("an expression")]
    while True:
        if cursor.sees(".") and cursor.after().kind is not Kind.NUMBER:
            cursor.next()
            if not cursor.at(Kind.WORD, Kind.QUOTED):
                raise cursor.expected("a name after the dot")
            steps.append(cursor.next().text)
        elif (
            cursor.sees("[")
            and cursor.after().kind in (Kind.NUMBER, Kind.STRING)
            and cursor.after(2).text == "]"
        ):
            cursor.next()
            quoted = cursor.at(Kind.STRING)
            steps.append(cursor.next().text if quoted else cursor.whole_number("the index", 0, 2**31 - 1))
            cursor.expect("]")
        else:
            return Path(steps=tuple(steps), span=span)


def _number(cursor: Cursor, span: Span, *, negative: bool) -> Literal:
    text = cursor.next().text
    if text == ".":
        text += cursor.next().text
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise span.error(f"{text!r} is not a number")
    digits, exponent, suffix = match[1], match[2] or "", match[3].upper()
    if suffix and suffix not in _SUFFIXES:
        hint = "; write INTERVAL '5' MINUTE for a duration here" if short_duration(text) is not None else ""
        raise span.error(f"{text!r} is not a number{hint}")
    whole = digits.isdigit() and not exponent
    kind: LiteralKind = _SUFFIXES.get(suffix) or ("double" if exponent else "integer" if whole else "decimal")
    if kind in ("bigint", "smallint", "tinyint") and not whole:
        raise span.error(f"{text!r} is not a whole number; the suffix {suffix} needs one")
    if len(digits) > 400 or len(exponent) > 6:
        raise span.error("the number has too many digits")
    return Literal(kind=kind, text=("-" if negative else "") + digits + exponent.lower(), span=span)


def _case(cursor: Cursor) -> Node:
    span = cursor.span
    cursor.expect("CASE")
    operand = None if cursor.sees("WHEN") else expression(cursor)
    whens: list[When] = []
    while cursor.sees("WHEN"):
        at = cursor.span
        cursor.next()
        condition = expression(cursor)
        cursor.expect("THEN")
        whens.append(When(condition=condition, value=expression(cursor), span=at))
    if not whens:
        raise cursor.expected("WHEN", ["WHEN"])
    otherwise = expression(cursor) if cursor.takes("ELSE") else None
    cursor.expect("END")
    return Case(operand=operand, whens=tuple(whens), otherwise=otherwise, span=span)


def _cast(cursor: Cursor) -> Node:
    span, trying = cursor.span, cursor.next().upper == "TRY_CAST"
    cursor.expect("(")
    operand = expression(cursor)
    cursor.expect("AS")
    to = type_name(cursor)
    cursor.expect(")")
    return Cast(operand=operand, to=to, trying=trying, span=span)


def _call(cursor: Cursor) -> Node:
    span, name = cursor.span, cursor.next().upper
    cursor.expect("(")
    star = name == "COUNT" and cursor.takes("*")
    distinct = not star and cursor.takes("DISTINCT")
    arguments: tuple[Node, ...] = ()
    if not star and (distinct or not cursor.sees(")")):
        _no_subquery(cursor)
        arguments = expressions(cursor)
    cursor.expect(")")
    ignore = cursor.takes("IGNORE", "NULLS")
    where = over = None
    if cursor.sees("FILTER", "("):
        cursor.next()
        cursor.expect("(", "WHERE")
        where = expression(cursor)
        cursor.expect(")")
    if cursor.sees("OVER"):
        over = _over(cursor)
    return Call(
        name=name, arguments=arguments, star=star, distinct=distinct, ignore_nulls=ignore, where=where,
        over=over, span=span,
    )  # fmt: skip


def _over(cursor: Cursor) -> Over:
    span = cursor.span
    cursor.expect("OVER", "(", "ROWS", "WINDOW", "BUFFER")
    rows = cursor.whole_number("the size of the buffer", 1, MOST_ROWS)
    cursor.expect("ROWS")
    partition_by = expressions(cursor) if cursor.takes("PARTITION", "BY") else ()
    if cursor.sees("ORDER"):
        raise cursor.error("ORDER BY is not supported in OVER: records are in log order")
    cursor.expect(")")
    return Over(rows=rows, partition_by=partition_by, span=span)
