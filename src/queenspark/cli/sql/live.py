"""The rows of a SELECT, printed as they arrive."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from queenspark.cli.sql.values import Value, is_number
from queenspark.client.sql_results import SqlColumn

_GAP = "  "
_WIDEST = 40  # longer values are printed whole, but do not move the columns of all rows that follow
_LEAST = {"timestamp": 27, "date": 10, "boolean": 5}
_LEAST_OF_NUMBERS = 6
_LEAST_OF_OTHERS = 10


class LiveRows:
    """Aligned columns for rows that are still arriving: a column grows when a value needs it."""

    def __init__(self, columns: Sequence[SqlColumn], console: Console) -> None:
        self._columns = columns
        self._console = console
        self._widths = [max(cell_len(column.name), _least(column)) for column in columns]
        self._headed = False

    def print(self, rows: Sequence[Sequence[Value]]) -> None:
        """Print rows that arrived together."""
        grown = self._grow(rows)
        # On a terminal, a header that is no longer aligned is printed again.
        if not self._headed or (grown and self._console.is_terminal):
            self._print_head()
        for row in rows:
            self._print_line([value.styled() for value in row])

    def _grow(self, rows: Sequence[Sequence[Value]]) -> bool:
        before = list(self._widths)
        for index in range(len(self._widths)):
            for row in rows:
                width = min(cell_len(row[index].text), _WIDEST)
                self._widths[index] = max(self._widths[index], width)
        # The last column of text is not filled up, so it does not matter how wide it is.
        shown = before if self._columns and is_number(self._columns[-1]) else before[:-1]
        return self._widths[: len(shown)] != shown

    def _print_head(self) -> None:
        self._headed = True
        self._print_line([Text(column.name, style="bold") for column in self._columns])

    def _print_line(self, cells: Sequence[Text]) -> None:
        line = Text()
        for index, (cell, column, width) in enumerate(zip(cells, self._columns, self._widths, strict=True)):
            fill = " " * (width - cell_len(cell.plain))
            if index:
                line.append(_GAP)
            if is_number(column):
                line.append(fill)
            line.append_text(cell)
            if not is_number(column) and index < len(cells) - 1:
                line.append(fill)
        self._console.print(line, soft_wrap=True)


def _least(column: SqlColumn) -> int:
    return _LEAST.get(column.type, _LEAST_OF_NUMBERS if is_number(column) else _LEAST_OF_OTHERS)
