"""`queenspark import`: the records of files as messages of a queue."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from queenspark.cli.broker_api import RESPONSE_SECONDS, failures
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.bookmark import bookmark
from queenspark.cli.files.file_import import FileImport, Imported, Target
from queenspark.cli.files.source import STDIN, format_of, size_of
from queenspark.cli.options import AsJson, Url
from queenspark.cli.output import print_json, say
from queenspark.client.brokers import Brokers
from queenspark.client.credentials import credentials
from queenspark.client.sync.transport import Transport
from queenspark.settings import Settings
from queenspark.signals import handlers_kept, on_stop


def import_files(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Files to import, or - for standard input.")
    ],
    queue: Annotated[str, typer.Option(metavar="QUEUE", help="Target queue.")],
    kind: Annotated[
        Literal["json", "csv", "text", "parquet"] | None,
        typer.Option(
            "--format", help="Input format; json is one value per line (default: by file extension)."
        ),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Partition of all messages (default: Default).")
    ] = None,
    partition_by: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Field with the partition of each message.")
    ] = None,
    transaction_id_by: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Field with the transactionId of each message.")
    ] = None,
    strings: Annotated[bool, typer.Option("--strings", help="Keep all CSV values as strings.")] = False,
    on_error: Annotated[Literal["stop", "skip"], typer.Option(help="Handling of invalid lines.")] = "stop",
    again: Annotated[
        bool, typer.Option("--again", help="Import from the beginning, even if imported before.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Push the records of files to a queue. Run it again to resume where it stopped, without duplicates."""
    if partition is not None and partition_by is not None:
        raise Failure("--partition and --partition-by cannot be combined: pass one of them.", Exit.USAGE)
    kinds = [format_of(name, kind) for name in files]
    for name, its in zip(files, kinds, strict=True):
        _check(name, its, [option for option in (partition_by, transaction_id_by) if option is not None])
    broker = Settings.from_env(url=url).url.rstrip("/")
    target = Target(
        queue, partition, partition_by, transaction_id_by, strings=strings, skip=on_error == "skip"
    )
    started = time.monotonic()
    done: list[Imported] = []
    with failures():
        transport = Transport(Brokers(broker), timeout=RESPONSE_SECONDS, retries=0, credentials=credentials())
    try:
        with handlers_kept():
            on_stop(_interrupt)
            for name, its in zip(files, kinds, strict=True):
                done.append(Imported(name))
                _import(transport, broker, target, its, done[-1], again=again)
    except BaseException:
        _report(queue, done, time.monotonic() - started, as_json=as_json, failed=True)
        raise
    finally:
        transport.close()
    _report(queue, done, time.monotonic() - started, as_json=as_json)
    if any(one.skipped for one in done):
        raise typer.Exit(Exit.PARTLY)


def _check(name: str, kind: str, fields: list[str]) -> None:
    """Checks before anything is pushed."""
    if kind == "text" and fields:
        raise Failure(f"{name} is text, which has no field {fields[0]}: use --partition.", Exit.USAGE)
    if kind == "parquet" and (name == STDIN or name.endswith(".gz")):
        raise Failure("Parquet must be read from an uncompressed file, not from stdin or .gz.", Exit.USAGE)
    if name != STDIN and not Path(name).exists():
        raise Failure(f"{name} does not exist.", Exit.USAGE)
    if name != STDIN and Path(name).is_dir():
        raise Failure(f"{name} is a folder: pass its files, such as {name.rstrip('/')}/*.csv.", Exit.USAGE)


def _import(
    transport: Transport, broker: str, target: Target, kind: str, done: Imported, *, again: bool
) -> None:
    name = done.file
    importing = FileImport(transport, target, kind, done)
    with failures():
        # Only a file of its own can be found again: standard input, pipes and devices are read once.
        if size_of(name) is None:
            importing.run()
        else:
            with bookmark(broker, target.queue, Path(name).resolve()) as kept:
                importing.run(kept, again=again)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _report(queue: str, done: list[Imported], seconds: float, *, as_json: bool, failed: bool = False) -> None:
    if as_json:
        print_json({"queue": queue, "files": done})
        return
    for one in done:
        if one.note:
            say(one.note)
    if failed and not any(one.messages for one in done):
        return
    messages, skipped = sum(one.messages for one in done), sum(one.skipped for one in done)
    known = sum(one.duplicates for one in done)
    more = f", {known:,} duplicates" if known else ""
    also = f" {skipped:,} line{'' if skipped == 1 else 's'} skipped." if skipped else ""
    rate = f" ({messages / seconds:,.0f}/s)" if messages >= 1000 else ""
    say(f"Imported {messages:,} message{'' if messages == 1 else 's'} to {queue}{more}{rate}.{also}")
