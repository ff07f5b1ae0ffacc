"""`queenspark export`: the messages of a queue as a file."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.output_file import OutputFile, Standard
from queenspark.cli.files.queue_export import Export, Wanted
from queenspark.cli.options import Partition, QueueName, Url
from queenspark.cli.output import say
from queenspark.cli.seek import timestamp
from queenspark.signals import handlers_kept, on_stop

SUFFIXES = {"json": (".jsonl", ".ndjson", ".json"), "csv": (".csv",), "parquet": (".parquet",)}
STDOUT = "-"


def export(
    queue: QueueName,
    to: Annotated[str, typer.Option(metavar="PATH", help="Output file, or - for standard output.")],
    kind: Annotated[
        Literal["json", "csv", "parquet"] | None,
        typer.Option(
            "--format", help="Output format; json is one message per line (default: by file extension)."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Columns for CSV (default: fields of the first messages)."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Include partition, transactionId, creation time and headers."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Start at the first message at or after this ISO time (UTC if no zone).",
        ),
    ] = None,
    partition: Partition = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep exporting new messages until Ctrl-C.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start over and replace an existing file.")
    ] = False,
    url: Url = None,
) -> None:
    """Export a queue to a file, without affecting consumers. Run it again to append new messages."""
    its = _format(to, kind)
    if its == "parquet" and (follow or to == STDOUT or to.endswith(".gz")):
        raise Failure("Parquet needs an output file: no --follow, stdout or .gz.", Exit.USAGE)
    if columns is not None and (its != "csv" or full):
        raise Failure("--columns requires CSV and cannot be combined with --full.", Exit.USAGE)
    wanted = Wanted(
        queue=queue,
        kind=its,
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        full=full,
        since=None if since is None else timestamp(since),
        partition=partition,
    )
    with BrokerApi(url) as broker, handlers_kept():
        exporting = Export(broker, wanted)
        if to == STDOUT:
            exporting.run(Standard(), follow=follow)
            sys.stdout.flush()
            return
        with OutputFile(Path(to), wanted, overwrite=overwrite) as output:
            on_stop(exporting.on_signal)
            exporting.run(output, follow=follow)
            if not exporting.stopped:
                output.finish()
    say(exporting.summary(to))
    if exporting.stopped and not follow:
        raise typer.Exit(130)


def _format(to: str, given: str | None) -> str:
    if given is not None:
        return given
    if to == STDOUT:
        return "json"
    for kind, suffixes in SUFFIXES.items():
        if to.removesuffix(".gz").endswith(suffixes):
            return kind
    raise Failure(
        f"Cannot tell the format from the name {to}: pass --format {'|'.join(SUFFIXES)}.", Exit.USAGE
    )
