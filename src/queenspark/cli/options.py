"""Options that many commands share."""

from typing import Annotated

import typer

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
