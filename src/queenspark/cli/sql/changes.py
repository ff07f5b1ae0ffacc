"""The changes that a file of statements would make."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from queenspark.cli.sql.results import counted
from queenspark.cli.sql.values import printable
from queenspark.client.sql_results import SentResult

_CREATES = ("create_stream", "declare_stream", "create_source", "create_sink")
_MARGIN = 10
_STYLES = {"create": "green", "replace": "yellow", "drop": "red", "unchanged": "dim"}


class Change(NamedTuple):
    """The action on one name: create, replace, drop, or another word."""

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
    """The changes of a dry run; `there` maps existing names to their statements."""
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
        return Change("insert", f"{name}, {counted(result.count or 0)}")
    return Change(result.kind.partition("_")[0], name)


def print_changes(changes: Sequence[Change], console: Console) -> None:
    """Print the changes: a line per name, with the statement below it."""
    for change in changes:
        action = (f"{change.action:<10}", _STYLES.get(change.action, "bold"))
        console.print(Text.assemble(action, printable(change.name)), soft_wrap=True)
        if change.before is not None:
            _print_below(f"- {printable(change.before)}", "red", console)
            _print_below(f"+ {printable(change.statement or '')}", "green", console)
        elif change.statement is not None:
            _print_below(printable(change.statement), "", console)
        for warning in change.warnings:
            _print_below(f"Warning: {warning}", "yellow", console)


def _print_below(text: str, style: str, console: Console) -> None:
    """Print a text with a margin; a terminal wraps it within, a file has it on one line."""
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, _MARGIN)))
    else:
        console.print(" " * _MARGIN + text, soft_wrap=True)


class _Streams(msgspec.Struct):
    columns: list[dict[str, str]]
    rows: list[list[str | None]]


def statements_there(shown: bytes | msgspec.Raw) -> dict[str, str]:
    """The statements in a response to SHOW, by name."""
    found = msgspec.json.decode(shown, type=_Streams)
    names = [column["name"] for column in found.columns]
    name, statement = names.index("name"), names.index("statement")
    return {str(row[name]): str(row[statement]) for row in found.rows}
