"""Options that many commands share."""

import math
from typing import Annotated

import typer

_LONGEST = 2_000_000_000


def duration(given: str) -> float:
    """Parse a duration in seconds."""
    value = _number(given)
    if not 0 <= value <= _LONGEST:
        raise typer.BadParameter(f"{given!r} is not a number of seconds from 0 to {_LONGEST:,}")
    return value


def rate(given: str) -> float:
    """Parse a rate per second; JSON has no NaN and no infinity, so they would mean no limit."""
    value = _number(given)
    if not math.isfinite(value):
        raise typer.BadParameter(f"{given!r} is not a number")
    return value


def _number(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        return math.nan


Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="Broker URL (default: QUEENSPARK_URL, else http://127.0.0.1:6632)."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", help="Consumer group (default: the shared group of the queue)."),
]
Partition = Annotated[str | None, typer.Option("--partition", metavar="NAME", help="Only this partition.")]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=1000, help="Maximum number of rows, up to 1000.")
]
Offset = Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Rows to skip.")]
Search = Annotated[
    str | None,
    typer.Option("--search", metavar="TEXT", help="Only names that contain this text, ignoring case."),
]
Sort = Annotated[
    str, typer.Option("--sort", metavar="COLUMN", help="Sort column; a leading - sorts in descending order.")
]
StreamName = Annotated[str, typer.Argument(metavar="STREAM", help="Name of the stream.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Namespace; required if the name is ambiguous."),
]
