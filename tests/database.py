"""Connections of the tests that call the store's functions as the store does."""

from typing import Any

import psycopg

from queenspark.store.functions import SEARCH_PATH


def connect(url: str, *, autocommit: bool = True) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection that finds this version's functions."""
    return psycopg.connect(url, autocommit=autocommit, options=SEARCH_PATH)
