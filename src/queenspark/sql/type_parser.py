"""Type names: BIGINT, DECIMAL(10, 2), ARRAY<STRING>."""

from __future__ import annotations

from .cursor import Cursor
from .errors import did_you_mean
from .tokens import Kind
from .tree import TypeName

#: Types by spelling, to their canonical name.
SPELLINGS = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "BYTE": "TINYINT", "SMALLINT": "SMALLINT",
    "SHORT": "SMALLINT",
    "INT": "INT", "INTEGER": "INT", "BIGINT": "BIGINT", "LONG": "BIGINT", "FLOAT": "FLOAT", "REAL": "FLOAT",
    "DOUBLE": "DOUBLE", "DECIMAL": "DECIMAL", "DEC": "DECIMAL", "NUMERIC": "DECIMAL", "STRING": "STRING",
    "DATE": "DATE", "TIMESTAMP": "TIMESTAMP", "JSON": "JSON", "ARRAY": "ARRAY",
}  # fmt: skip
_MOST_DIGITS = 38
_DEEPEST = 3


def type_name(cursor: Cursor, level: int = 0) -> TypeName:
    """Parse a type."""
    span, token = cursor.span, cursor.token
    name = SPELLINGS.get(token.upper)
    if token.kind is not Kind.WORD or name is None:
        hint = did_you_mean(token.text, SPELLINGS)
        raise cursor.error(f"expected a type such as BIGINT or STRING, found {cursor.found()}{hint}")
    cursor.next()
    if name == "DECIMAL":
        return TypeName(name=name, numbers=_digits(cursor), span=span)
    if name != "ARRAY":
        return TypeName(name=name, span=span)
    if level >= _DEEPEST:
        raise span.error(f"arrays may be nested {_DEEPEST} deep at most; use JSON")
    cursor.expect("<")
    element = type_name(cursor, level + 1)
    cursor.expect(">")
    return TypeName(name=name, element=element, span=span)


def _digits(cursor: Cursor) -> tuple[int, ...]:
    precision, scale = 10, 0
    if cursor.takes("("):
        precision = cursor.whole_number("the precision", 1, _MOST_DIGITS)
        if cursor.takes(","):
            scale = cursor.whole_number("the scale", 0, precision)
        cursor.expect(")")
    return precision, scale
