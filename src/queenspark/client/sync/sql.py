# Made from aio/sql.py by `make format`: change that file, not this one.
"""SQL statements, and the streamed rows of a SELECT."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from ..sql_results import Row, SqlColumn, SqlResponse, SqlResult, columns_of, row_reader
from .lines import Lines
from .session import Session


class SqlResults:
    """The results of SQL statements. The rows are streamed for a SELECT, else those of the last statement.

    Ending the iteration over the rows of a SELECT, or closing this object, ends the query.
    """

    def __init__(
        self,
        results: list[SqlResult],
        columns: list[SqlColumn],
        lines: Lines | None = None,
        first: list[bytes] | None = None,
    ) -> None:
        #: One result per statement, in order; empty for a SELECT.
        self.results = results
        self.columns = columns
        self._lines = lines
        self._first = first or []

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows. Those of a SELECT can be read once."""
        if self._lines is None:
            for row in self.results[-1].rows:
                yield row
            return
        read = row_reader(self.columns)
        try:
            lines, self._first = self._first, []
            while lines or (lines := self._lines.more()):
                for line in lines:
                    yield read(line)
                lines = []
        finally:
            self.close()

    def close(self) -> None:
        """End the query of a SELECT."""
        if self._lines is not None:
            self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run(session: Session, statements: str, timeout_ms: int | None, dry_run: bool) -> SqlResults:
    """Send statements. They are retried only when they certainly did not arrive."""
    body = {"sql": statements, "dryRun": dry_run, "timeout": timeout_ms}
    response = session.call("POST", "sql", body=body, kind=SqlResponse, repeatable=dry_run, may_be_lines=True)
    if not isinstance(response, Lines):
        results = [result.read() for result in response.results]
        return SqlResults(results, results[-1].columns)
    try:
        lines = response.more()
        return SqlResults([], columns_of(lines[0] if lines else b""), response, lines[1:])
    except BaseException:
        response.close()
        raise
