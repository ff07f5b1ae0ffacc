"""The server-side functions of this version, in a database schema of their own.

Each version finds its functions through the `search_path` of its connections. So a version that starts beside
another one never replaces functions that the other one is calling.
"""

from __future__ import annotations

import hashlib

import psycopg
from psycopg import sql

from .queries import text

FUNCTION_SET = "queenspark_" + hashlib.sha256(text("functions.sql").encode()).hexdigest()[:12]
"""The schema that holds the functions: named after their source, so a change of it is another set."""

SEARCH_PATH = f"-c search_path={FUNCTION_SET}"
"""A connection option; everything but the functions is named with its schema."""


def install_functions(connection: psycopg.Connection, level: int) -> bool:
    """Create the functions of this version, unless they exist; return whether they were missing."""
    # The schema counts, not the row: a restored dump of the schema `queenspark` has no functions.
    row = connection.execute("SELECT to_regnamespace(%s) IS NULL", (FUNCTION_SET,)).fetchone()
    if row is None or not row[0]:
        return False
    name = sql.Identifier(FUNCTION_SET)
    connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(name))
    connection.execute(sql.SQL(text("functions.sql")))
    connection.execute(
        "INSERT INTO queenspark.function_sets (name, level) VALUES (%s, %s)"
        " ON CONFLICT (name) DO UPDATE SET level = excluded.level, installed_at = clock_timestamp()",
        (FUNCTION_SET, level),
    )
    return True


def drop_functions_below(connection: psycopg.Connection, level: int) -> list[str]:
    """Drop the function sets of versions that may no longer run; return their names."""
    old = "SELECT name FROM queenspark.function_sets WHERE level < %s"
    names = sorted(str(row[0]) for row in connection.execute(old, (level,)).fetchall())
    if names:  # a role without the right to delete has nothing to do here, as a rule
        connection.execute("DELETE FROM queenspark.function_sets WHERE name = ANY (%s)", (names,))
    for name in names:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
    return names
