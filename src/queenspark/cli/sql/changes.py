"""What a file of statements would change, before it does."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from queenspark.cli.sql.results import sentence
from queenspark.cli.sql.values import printable
from queenspark.client.sql_results import SentResult

_CREATES = ("create_stream", "declare_stream", "create_source", "create_sink")
_STYLES = {"create": "green", "replace": "yellow", "drop": "red", "unchanged": "dim"}


class Change(NamedTuple):
    """What becomes of one name: create, replace, drop, or something else in a word."""

    action: str
    name: str
    statement: str | None = None
    before: str | None = None
    warnings: Sequence[str] = ()

    @property
    def changes(self) -> bool:
        """Whether anything will be different."""
        return self.action != "unchanged"


def changes_of(results: Iterable[SentResult], there: dict[str, str]) -> list[Change]:
    """What statements would do, from a dry run; `there` are the statements of what exists, by name."""
    return [change for result in results if (change := _change(result, there)) is not None]


def _change(result: SentResult, there: dict[str, str]) -> Change | None:
    name = result.name or ""
    if result.kind in ("show", "describe", "explain", "select"):
        return None
    if result.changed is False:
        return Change("unchanged", name)
    if result.kind in _CREATES:
        before = there.get(name)
        action = "create" if before is None else "replace"
        shown = name if result.how is None else f"{name}, {result.how}"
        return Change(action, shown, result.statement, before, result.warnings)
    if result.kind.startswith("drop_"):
        return Change("drop", ", ".join(result.dropped))
    if result.kind == "insert":
        return Change("insert", sentence(result, dry_run=True))
    return Change(result.kind.partition("_")[0], name)


def print_changes(changes: Sequence[Change], console: Console) -> None:
    """Print what would change: a line for each name, and below it the statement."""
    for change in changes:
        line = Text(f"{change.action:<10}", style=_STYLES.get(change.action, "bold"))
        console.print(line.append(printable(change.name), style="default"), soft_wrap=True)
        if change.before is not None:
            console.print(Text(f"    - {printable(change.before)}", style="red"), soft_wrap=True)
        if change.statement is not None:
            sign = "+" if change.before is not None else " "
            style = "green" if change.before is not None else ""
            console.print(Text(f"    {sign} {printable(change.statement)}", style=style), soft_wrap=True)
        for warning in change.warnings:
            console.print(Text(f"    warning: {warning}", style="yellow"), soft_wrap=True)


class _Streams(msgspec.Struct):
    columns: list[dict[str, str]]
    rows: list[list[str | None]]


def statements_there(shown: bytes | msgspec.Raw) -> dict[str, str]:
    """The statements in an answer to SHOW, by name."""
    found = msgspec.json.decode(shown, type=_Streams)
    names = [column["name"] for column in found.columns]
    name, statement = names.index("name"), names.index("statement")
    return {str(row[name]): str(row[statement]) for row in found.rows}
