"""Names that exist at the broker, for completion."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.client.errors import SqlError
from queenspark.client.sync.lines import Lines

_FRESH_SECONDS = 10.0
_MOST = 2000  # entries of a completion list

Rows = list[list[Any]]


class _Shown(msgspec.Struct):
    rows: list[list[Any]] = []


class Names:
    """Streams, jobs, queues, functions and columns, fetched when needed and cached for some seconds."""

    def __init__(self, broker: BrokerApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._clock = clock
        self._kept: dict[str, tuple[float, Rows]] = {}

    def forget(self) -> None:
        """Clear the cache after a statement."""
        self._kept.clear()

    def streams(self) -> list[str]:
        """Names of streams."""
        return [row[0] for row in self._rows("SHOW STREAMS")]

    def queues(self) -> list[str]:
        """Names of queues."""
        return [row[0] for row in self._rows("SHOW QUEUES")]

    def jobs(self) -> list[str]:
        """Names of jobs."""
        return [row[0] for row in self._rows("SHOW JOBS")]

    def functions(self) -> list[tuple[str, str]]:
        """Functions: name, and how each one is called."""
        return [(row[0], row[1]) for row in self._rows("SHOW FUNCTIONS")]

    def columns(self, name: str) -> list[tuple[str, str]]:
        """The columns of a stream or queue: name and type."""
        return [(row[0], row[1]) for row in self._rows(f"DESCRIBE {name}")]

    def _rows(self, statement: str) -> Rows:
        at, rows = self._kept.get(statement, (float("-inf"), []))
        if self._clock() - at < _FRESH_SECONDS:
            return rows
        rows = self._ask(statement)
        self._kept[statement] = (self._clock(), rows)
        return rows

    def _ask(self, statement: str) -> Rows:
        """The rows of a response; none if the request fails, which the next statement reports."""
        try:
            response = self._broker.sql(statement)
        except (Failure, SqlError):
            return []
        if isinstance(response, Lines) or not response:
            return []
        return msgspec.json.decode(response[0], type=_Shown).rows[:_MOST]
