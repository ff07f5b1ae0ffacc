"""Output of commands: tables or JSON on stdout, sentences on stderr."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_OF_A_FILE = 200

Column = tuple[str, str]
"""A title, and the name of the value; a dot in the name goes one level deeper."""


def out() -> Console:
    """The console for results."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE, markup=False, highlight=False)


def err() -> Console:
    """The console for everything that is not a result."""
    return _Aside(stderr=True, markup=False, highlight=False, soft_wrap=True)


class _Aside(Console):
    """A console whose broken pipe does not end the command."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


def say(sentence: str) -> None:
    """Print a sentence to stderr, if it is open."""
    with suppress(OSError):
        err().print(sentence)


def print_json(value: Any) -> None:
    """Print one value as JSON on lines of its own."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")


def print_json_line(value: Any) -> None:
    """Print one value as one line of JSON, at once."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def print_table(records: Iterable[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    """Print records as a table; columns for which no record has a value are left out."""
    rows = [[find(record, name) for _, name in columns] for record in records]
    used = [index for index in range(len(columns)) if any(row[index] is not None for row in rows)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index in used:
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(columns[index][0], justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row[index])) for index in used))
    out().print(table)


def print_facts(record: Mapping[str, Any]) -> None:
    """Print the non-null fields of a record, one per line; nested names are dotted."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _flat(record):
        if value is not None:
            table.add_row(Text(name), Text(cell(value)))
    out().print(table)


def find(record: Mapping[str, Any], name: str) -> Any:
    """A value of a record; a dot in the name goes one level deeper."""
    value: Any = record
    for step in name.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def cell(value: Any) -> str:
    """The display form of a value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def records_of(response: Any, name: str) -> list[dict[str, Any]]:
    """The list of records in a response: under `name`, or the response itself."""
    found = response.get(name) if isinstance(response, dict) else response
    return [record for record in found if isinstance(record, dict)] if isinstance(found, list) else []


def say_page(rows: Sequence[Any], response: Mapping[str, Any], offset: int) -> None:
    """Say which rows of a list were shown, unless it was all."""
    total = response.get("total", len(rows))
    if len(rows) < total:
        say(f"{offset + 1:,} to {offset + len(rows):,} of {total:,}; see --limit, --offset and --search.")


def print_page(
    response: Any,
    name: str,
    columns: Sequence[Column],
    *,
    nothing: str,
    offset: int,
    as_json: bool,
    shown: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
) -> None:
    """Print a page of a list, each record as `shown` presents it; say `nothing` if it is empty."""
    if as_json:
        return print_json(response)
    records = records_of(response, name)
    if not records:
        return say(nothing)
    print_table(map(shown, records), columns)
    return say_page(records, response, offset)


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
