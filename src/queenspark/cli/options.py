"""Options that many commands share."""

from typing import Annotated

import typer

Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="The broker to talk to (default: QUEENSPARK_URL).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", help="The consumer group (default: the shared queue mode)."),
]
Partition = Annotated[str | None, typer.Option("--partition", metavar="NAME", help="Only this partition.")]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=1000, help="Most rows to show, up to 1000.")
]
Offset = Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Rows to pass over first.")]
Search = Annotated[
    str | None, typer.Option("--search", metavar="TEXT", help="Only names that contain this, in any case.")
]
Sort = Annotated[
    str, typer.Option("--sort", metavar="COLUMN", help="What to sort by; with - before it descending.")
]
StreamName = Annotated[str, typer.Argument(metavar="STREAM", help="The stream's name.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Its namespace; needed when two have that name."),
]
