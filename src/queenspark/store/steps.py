"""Notes of the job being computed, which identify the culprit when a worker dies.

Only one worker at a time computes a job while notes are made. So there is at most one note, and if it exists
while the lock is free, its worker is dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from .errors import WorkerDied
from .functions import SEARCH_PATH
from .progress import Stream
from .queries import query

_LOCK = 0x7173737465707321  # one step at a time


class Steps:
    """Makes notes, on its own connection, opened at the first step."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: psycopg.Connection[tuple[Any, ...]] | None = None

    @contextmanager
    def noted(self, stream: Stream) -> Iterator[None]:
        """Note that this process computes a job. Raises WorkerDied if another one died doing so."""
        if self._opened is None or self._opened.closed:
            self._opened = psycopg.connect(
                self._url, autocommit=True, options=SEARCH_PATH, application_name="queenspark steps"
            )
        connection = self._opened
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        try:
            if connection.execute(query("steps")).fetchone() is not None:
                raise WorkerDied("another worker died while it computed a job")
            params = {"stream_id": stream[0], "version": stream[1]}
            connection.execute(query("add_step"), params)
            try:
                yield
            finally:
                connection.execute(query("forget_steps"))
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))

    def close(self) -> None:
        """Disconnect."""
        if self._opened is not None:
            self._opened.close()
