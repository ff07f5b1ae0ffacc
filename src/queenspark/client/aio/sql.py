"""SQL statements, and the streamed rows of a SELECT."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from ..sql_results import Row, SqlColumn, SqlResponse, SqlResult, columns_of, row_reader
from .lines import AsyncLines
from .session import AsyncSession


class AsyncSqlResults:
    """The results of SQL statements. The rows are streamed for a SELECT, else those of the last statement.

    Ending the iteration over the rows of a SELECT, or closing this object, ends the query.
    """

    def __init__(
        self,
        results: list[SqlResult],
        columns: list[SqlColumn],
        lines: AsyncLines | None = None,
        first: list[bytes] | None = None,
    ) -> None:
        #: One result per statement, in order; empty for a SELECT.
        self.results = results
        self.columns = columns
        self._lines = lines
        self._first = first or []

    async def __aiter__(self) -> AsyncIterator[Row]:
        """Iterate over the rows. Those of a SELECT can be read once."""
        if self._lines is None:
            for row in self.results[-1].rows:
                yield row
            return
        read = row_reader(self.columns)
        try:
            lines, self._first = self._first, []
            while lines or (lines := await self._lines.more()):
                for line in lines:
                    yield read(line)
                lines = []
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """End the query of a SELECT."""
        if self._lines is not None:
            await self._lines.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def run(
    session: AsyncSession, statements: str, timeout_ms: int | None, dry_run: bool
) -> AsyncSqlResults:
    """Send statements. They are retried only when they certainly did not arrive."""
    body = {"sql": statements, "dryRun": dry_run, "timeout": timeout_ms}
    response = await session.call(
        "POST", "sql", body=body, kind=SqlResponse, repeatable=dry_run, may_be_lines=True
    )
    if not isinstance(response, AsyncLines):
        results = [result.read() for result in response.results]
        return AsyncSqlResults(results, results[-1].columns)
    try:
        lines = await response.more()
        return AsyncSqlResults([], columns_of(lines[0] if lines else b""), response, lines[1:])
    except BaseException:
        await response.aclose()
        raise
