"""Statements are found by their names."""

import re

from queenspark.store.queries import names, text


def test_no_two_statements_have_the_same_name() -> None:
    written = re.findall(r"^-- name: (\w+)$", text("queries.sql"), re.MULTILINE)
    assert sorted(written) == sorted(names())
