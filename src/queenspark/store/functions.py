"""The server-side functions of this version, in their own database schema.

Each version finds its functions through the `search_path` of its connections, so a newer version that starts
alongside never replaces functions in use by the older one.
"""

from __future__ import annotations

import hashlib

import psycopg
from psycopg import sql

from .queries import text

FUNCTION_SET = "queenspark_" + hashlib.sha256(text("functions.sql").encode()).hexdigest()[:12]
"""The schema of the functions: its name contains the hash of their source."""

SEARCH_PATH = f"-c search_path={FUNCTION_SET}"
"""A connection option; all other objects are schema-qualified."""


def install_functions(connection: psycopg.Connection, level: int) -> bool:
    """Create the functions of this version, unless they exist; return whether they were missing."""
    # Check the schema, not the row: a restored dump of the schema `queenspark` has no functions.
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
    if names:  # skip the statement: the role may lack the right to delete
        connection.execute("DELETE FROM queenspark.function_sets WHERE name = ANY (%s)", (names,))
    for name in names:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
    return names
