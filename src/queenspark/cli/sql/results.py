"""Results of statements for display: a sentence or a table."""

import sys
from collections.abc import Sequence

import msgspec

from queenspark.cli.output import out, print_facts, say
from queenspark.cli.sql.table import print_rows
from queenspark.cli.sql.values import Value, value_of
from queenspark.client.sql_results import SentResult, SqlColumn

# Kind of object, past participle, and the text for "no change".
_DONE = {
    "create_stream": ("job", "defined", "is unchanged"),
    "declare_stream": ("stream", "defined", "is unchanged"),
    "create_source": ("source", "defined", "is unchanged"),
    "create_sink": ("sink", "defined", "is unchanged"),
    "pause_job": ("job", "paused", "is already paused"),
    "resume_job": ("job", "resumed", "is not paused"),
    "restart_job": ("job", "restarted", "needs no restart"),
}


def print_result(result: SentResult, *, dry_run: bool) -> None:
    """Print the result of one statement."""
    if result.kind == "explain":
        for row in rows_of(result):
            out().print(row[0].text, soft_wrap=not sys.stdout.isatty())
    elif result.kind == "describe":
        _print_description(result)
    elif result.kind == "select":
        say("The query is valid; it was not run.")
    elif result.columns:
        print_rows(result.columns, rows_of(result))
        say(f"{counted(len(result.rows))}.")
    else:
        say(sentence(result, dry_run=dry_run))
    for warning in result.warnings:
        say(f"Warning: {warning}")


def sentence(result: SentResult, *, dry_run: bool) -> str:
    """The result of a statement as a sentence."""
    would = "would be" if dry_run else "is"
    if result.kind == "insert":
        rows = counted(result.count or 0)
        return (
            f"{rows} would be inserted into {result.name}."
            if dry_run
            else f"{rows} inserted into {result.name}."
        )
    if result.kind.startswith("drop_"):
        what = result.kind.removeprefix("drop_")
        if not result.dropped:
            return f"The {what} {result.name} does not exist."
        names = ", ".join(result.dropped)
        return f"Dropped: {names}." if not dry_run else f"Would be dropped: {names}."
    what, done, unchanged = _DONE.get(result.kind, ("statement", "run", "has no effect"))
    version = "" if result.version is None else f", version {result.version}"
    if result.changed is False:
        return f"The {what} {result.name} {unchanged}{version}."
    if result.how is not None:
        return f"The {what} {result.name} {would} replaced {result.how}{version}."
    return f"The {what} {result.name} {would} {done}{version}."


def rows_of(result: SentResult) -> list[list[Value]]:
    """The rows of a result."""
    return [row_of(row, result.columns) for row in result.rows]


def row_of(line: bytes | msgspec.Raw, columns: Sequence[SqlColumn]) -> list[Value]:
    """A row as it was sent."""
    values = msgspec.json.decode(line, type=list[msgspec.Raw])
    return [value_of(bytes(value), column) for value, column in zip(values, columns, strict=True)]


def counted(rows: int) -> str:
    """How many rows, in words."""
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _print_description(result: SentResult) -> None:
    print_facts({
        "name": result.name,
        "version": result.version,
        "statement": result.statement,
        **result.details,
    })  # fmt: skip
    if result.rows:
        out().print()
        print_rows(result.columns, rows_of(result))
