"""The page about SQL has every function."""

from tools.sql_functions import PAGE, tables


def test_the_tables_of_functions_are_up_to_date() -> None:
    assert tables() in PAGE.read_text(), "run tools/sql_functions.py"
