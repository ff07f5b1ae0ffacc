"""Runs SQL scripts with their own names on one broker: blocks of statements, and their results."""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from queenspark.sql import SqlError, parse
from queenspark.sql.statements import (
    ControlJob,
    CreateStream,
    Describe,
    Drop,
    Explain,
    Select,
    Show,
)
from tests.jobs.system import Jobs

PATIENCE = 60.0
_BLOCK = re.compile(r"^```sql\n(.*?)^```\n(?:\n?```(json|text)\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)

Object = dict[str, Any]


class Block(NamedTuple):
    """Statements of a page, and their documented results."""

    line: int
    sql: str
    kind: str
    expected: str


class Outcome(NamedTuple):
    """The result of a block: the lines of an error or table, the rows of a SELECT, or a job with rows."""

    lines: list[str] | None = None
    rows: list[Object] | None = None
    job: str | None = None


def blocks(page: str) -> list[Block]:
    """The blocks of SQL of a page, each with the block of results that follows it directly."""
    return [
        Block(page.count("\n", 0, match.start()) + 1, match[1], match[2] or "", match[3] or "")
        for match in _BLOCK.finditer(page)
    ]


class Script(Jobs):
    """Jobs under the names that their statements say."""

    def name(self, name: str) -> str:
        """The name, without a tag."""
        return name

    def play(self, sql: str) -> Outcome:
        """Run the statements of one block; a SELECT comes last."""
        self.drain()
        try:
            statements = parse(sql)
        except SqlError as error:
            return Outcome([str(error)])
        last = statements[-1]
        before, query = _split(sql, last) if isinstance(last, Select) else (sql, "")
        response = self.sql.post(before) if before.strip() else self.sql.post(query, dryRun=True)
        if response.status_code == 400:
            found = response.json()
            return Outcome([f"line {found['line']}, column {found['column']}: {found['error']}"])
        assert response.status_code == 200, response.text
        if query:
            return Outcome(rows=self._select(query))
        self.drain()
        job = named_job(sql)
        if isinstance(last, Show | Describe | Explain):
            return Outcome(list(_lines(response.json()["results"][-1])), job=job)
        if isinstance(last, CreateStream) and last.replace:
            return Outcome([_replaced(response.json()["results"][-1])], job=job)
        return Outcome(job=job)

    def results(self, outcome: Outcome) -> list[Object]:
        """The current rows of an outcome."""
        if outcome.rows is not None:
            return outcome.rows
        return [] if outcome.job is None else self.data(outcome.job)

    def wait(self, outcomes: Sequence[tuple[Outcome, list[Object]]]) -> None:
        """Run the pipeline until all rows are emitted: the last windows of a key wait until it is idle."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.drain()
            if all(len(self.results(outcome)) >= len(rows) for outcome, rows in outcomes):
                return
            time.sleep(0.1)

    def check(self, outcome: Outcome, expected: list[Object]) -> None:
        """Compare rows. Only those of a partition have an order."""
        assert sorted(map(_text, self.results(outcome))) == sorted(map(_text, expected))
        if outcome.job is None:
            return
        for partition in {row.partition for row in self.rows(outcome.job)}:
            rest = iter(expected)
            for row in self.rows(outcome.job):
                if row.partition == partition:
                    assert row.data in rest, f"{row.data} comes too early"

    def _select(self, query: str) -> list[Object]:
        """The rows of a SELECT, while the pipeline runs."""
        found: list[Object] = []

        def read() -> None:
            with self.sql.select(query, timeout=int(PATIENCE * 1000)) as lines:
                names = [column["name"] for column in next(lines)["columns"]]
                found.extend(dict(zip(names, row, strict=True)) for row in lines)

        reader = threading.Thread(target=read)
        reader.start()
        while reader.is_alive():
            self.drain()
        reader.join()
        return found


def objects(text: str) -> list[Object]:
    """Rows that are written as a JSON object on each line."""
    return [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]


def cells(lines: Sequence[str]) -> list[list[str]]:
    """Lines of a table, cut at two blanks or more."""
    return [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip()]


def matches(found: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether lines are the expected ones; `…` is anything within a cell, or all lines that follow."""
    left, right = cells(found), cells(expected)
    if right[-1] == ["…"]:
        right.pop()
        left = left[: len(right)]
    return len(left) == len(right) and all(
        len(a) == len(b) and all(_matches(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(left, right, strict=True)
    )


def _matches(found: str, expected: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), found) is not None


def _text(row: Object) -> str:
    return repr(sorted(row.items()))


def named_job(sql: str) -> str | None:
    """The last job that the statements of a block name."""
    try:
        statements = parse(sql)
    except SqlError:
        return None
    names = [each.name for each in statements if isinstance(each, CreateStream | ControlJob | Drop)]
    return names[-1] if names else None


def _split(sql: str, last: Select) -> tuple[str, str]:
    lines = sql.splitlines(keepends=True)
    at = sum(map(len, lines[: last.span.line - 1])) + last.span.column - 1
    return sql[:at], sql[at:]


def _replaced(result: dict[str, Any]) -> str:
    """One line that says how a job was replaced."""
    how = result["how"] if result["changed"] else "unchanged"
    return f"{result['name']}  version {result['version']}  {how}"


def _lines(result: dict[str, Any]) -> Iterator[str]:
    """A result as lines: a table with its head, or the plan."""
    if result["kind"] != "explain":
        yield "  ".join(column["name"] for column in result["columns"])
    for row in result["rows"]:
        yield "  ".join("NULL" if value is None else str(value) for value in row)
