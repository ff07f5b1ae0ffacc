"""A complete result as a table; one value per line if the terminal is too narrow."""

import sys
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from queenspark.cli.sql.values import Value, is_number
from queenspark.client.sql_results import SqlColumn

_GAP = 2
_NARROWEST = 24  # room that a column needs to be folded; with less, rows are shown one below the other


def print_rows(
    columns: Sequence[SqlColumn], rows: Sequence[Sequence[Value]], console: Console | None = None
) -> None:
    """Print rows as a table with aligned columns. In a file every row is one line."""
    widths = [
        max([cell_len(column.name), *(cell_len(row[index].text) for row in rows)])
        for index, column in enumerate(columns)
    ]
    needed = sum(widths) + _GAP * len(widths)
    console = console or Console(width=None if sys.stdout.isatty() else needed, markup=False, highlight=False)
    room = console.width - needed + max(widths, default=0)
    if needed > console.width and room < _NARROWEST:
        _print_one_by_one(console, columns, rows)
    else:
        console.print(_table(columns, rows, widths.index(max(widths)) if widths else 0))


def _table(columns: Sequence[SqlColumn], rows: Sequence[Sequence[Value]], widest: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(
            Text(column.name),
            justify="right" if is_number(column) else "left",
            no_wrap=index != widest,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(value.styled() for value in row))
    return table


def _print_one_by_one(
    console: Console, columns: Sequence[SqlColumn], rows: Sequence[Sequence[Value]]
) -> None:
    for number, row in enumerate(rows):
        if number:
            console.print()
        facts = Table(box=None, pad_edge=False, show_header=False)
        facts.add_column(style="bold", no_wrap=True)
        facts.add_column(overflow="fold")
        for column, value in zip(columns, row, strict=True):
            facts.add_row(Text(column.name), value.styled())
        console.print(facts)
