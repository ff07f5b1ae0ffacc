"""Rows of SQL as tables."""

import io

from rich.console import Console

from queenspark.cli.sql.live import LiveRows
from queenspark.cli.sql.table import print_rows
from queenspark.cli.sql.values import Value
from queenspark.client.sql_results import SqlColumn


def test_a_table_that_is_too_wide_folds_its_widest_column_or_shows_rows_one_by_one() -> None:
    columns = [SqlColumn("name", "string"), SqlColumn("n", "bigint"), SqlColumn("statement", "string")]
    row = [Value("totals"), Value("12"), Value("SELECT " + "page, " * 8 + "ms")]

    def printed(width: int) -> list[str]:
        console = Console(width=width, color_system=None, file=io.StringIO(), record=True)
        print_rows(columns, [row, row], console)
        return [line.rstrip() for line in console.export_text().splitlines()]

    assert len(printed(100)) == 3
    assert printed(100)[1].startswith("totals  12  SELECT")
    folded = printed(48)
    assert folded[1] == "totals  12  SELECT page, page, page, page, page,"
    assert folded[2] == "            page, page, page, ms"
    one_by_one = printed(30)
    assert one_by_one[:2] == ["name       totals", "n          12"]
    assert one_by_one.count("") == 1


def test_a_head_is_repeated_on_a_terminal_when_its_columns_move() -> None:
    def printed(*, terminal: bool) -> list[str]:
        console = Console(force_terminal=terminal, color_system=None, record=True, width=80)
        rows = LiveRows([SqlColumn("page", "string"), SqlColumn("n", "bigint")], console)
        rows.print([[Value("a"), Value("1")]])
        rows.print([[Value("b"), Value("2")]])
        rows.print([[Value("x" * 12), Value("1000000")]])
        return console.export_text().splitlines()

    heads = [line for line in printed(terminal=True) if line.startswith("page")]
    assert heads == ["page             n", "page                n"]
    assert len([line for line in printed(terminal=False) if line.startswith("page")]) == 1
