"""Statements are found by their names."""

import re

import pytest
from psycopg import sql

from queenspark.store.queries import names, query, text, written


def test_no_two_statements_have_the_same_name() -> None:
    written = re.findall(r"^-- name: (\w+)$", text("queries.sql"), re.MULTILINE)
    assert sorted(written) == sorted(names())


def test_there_is_one_way_to_write_a_value() -> None:
    for name in names():
        for before, value, after in re.findall(r"(.?)%(.)([^)]*\)?.?)", query(name)):
            assert (value, after[-2:]) == ("(", ")s") or value == "%" or before == "%", (name, after)


@pytest.mark.parametrize("number", [7, -7, 2**62])
def test_values_and_pieces_of_sql_are_written_into_a_statement(number: int) -> None:
    values = {"queue_id": 3, "after_txid": 1, "after_id": number, "upto_txid": 5, "upto_id": 6}
    statement = written("log_branch", values, columns=sql.SQL(", m.queue_id"))
    assert "SELECT m.txid, m.id, m.queue_id FROM" in statement
    assert "m.queue_id = 3" in statement
    assert re.search(rf"\(1, +{number}\)", statement)
    assert "%" not in statement


def test_a_text_is_written_as_a_literal() -> None:
    assert "OFFSET 'it''s'" in written("log_nth", {"skip": "it's"}, branches=sql.SQL("SELECT 1"))
