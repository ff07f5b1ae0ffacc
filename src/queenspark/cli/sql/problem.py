"""An error of a statement: its line, a caret under the column, and the message."""

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from queenspark.cli.sql.values import printable
from queenspark.client.errors import SqlError

_WIDTH = 100


def shown_problem(error: SqlError, text: str) -> Group | Text:
    """The error, with the line of the text that it is about."""
    lines = text.split("\n")
    message = Text(str(error), style="red")
    if error.line is None or error.column is None or not 1 <= error.line <= len(lines):
        return message
    line = printable(lines[error.line - 1].replace("\t", " "))
    column = error.column - 1
    if len(line) > _WIDTH:
        begin = max(0, min(column - _WIDTH // 2, len(line) - _WIDTH))
        line, column = line[begin : begin + _WIDTH], column - begin
    number = f"{error.line} | " if len(lines) > 1 else "  "
    caret = " " * (len(number) + cell_len(line[:column])) + "^"
    return Group(Text.assemble((number, "dim"), line), Text(caret, style="bold red"), message)
