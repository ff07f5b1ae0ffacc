"""Display forms of SQL values."""

from typing import NamedTuple

import msgspec
from rich.text import Text

from queenspark.client.sql_results import SqlColumn

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


class Value(NamedTuple):
    """The text of a value; NULL is not the string of that name."""

    text: str
    is_null: bool = False

    def styled(self) -> Text:
        """The text for a terminal: NULL is dim."""
        return Text(self.text, style="dim" if self.is_null else "")


def value_of(sent: bytes, column: SqlColumn) -> Value:
    """A value as it was sent: numbers with all their digits, strings without quotes."""
    if sent == b"null":
        return Value("NULL", is_null=True)
    if sent.startswith(b'"') and column.type != "json":
        return Value(printable(msgspec.json.decode(sent, type=str)))
    return Value(printable(sent.decode()))


def is_number(column: SqlColumn) -> bool:
    """Whether a column is aligned to the right."""
    return column.type.partition("(")[0] in _NUMBERS


def printable(text: str) -> str:
    """A text on one line, whose control characters cannot reach the terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
