"""`queenspark push`: one message from the command line, or many from standard input."""

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.options import AsJson, QueueName, Url
from queenspark.cli.output import err, print_json_line, say

Item = dict[str, Any]


class NotJson(ValueError):
    """A text that should be JSON is not; says which line, if it was one of many."""


def push(
    queue: QueueName,
    payload: Annotated[
        str | None,
        typer.Argument(
            metavar="PAYLOAD|-", help="A JSON message; - or omitted: one message per line of stdin."
        ),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Partition (default: Default).")
    ] = None,
    transaction_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Idempotency key of a single message.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Header of every message; repeatable."),
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Push payloads as text, not JSON.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Messages per request, when reading stdin.")] = 500,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Push one message, or each line of standard input."""
    common: Item = {"queue": queue} if partition is None else {"queue": queue, "partition": partition}
    if header:
        common["headers"] = dict(map(_header, header))
    items: Iterator[Item]
    if payload is not None and payload != "-":
        if transaction_id is not None:
            common["transactionId"] = transaction_id
        raw = payload.encode(errors="surrogateescape")  # arguments may be any bytes
        items = ({**common, "payload": _payload(one, "The payload", text=text)} for one in [raw])
    elif payload is None and sys.stdin.isatty():
        raise Failure("No payload: pass one as an argument, or pipe lines into this command.", Exit.USAGE)
    elif transaction_id is not None:
        raise Failure("--transaction-id requires a single message; it cannot be used with stdin.", Exit.USAGE)
    else:
        items = _items_of_lines(sys.stdin.buffer, common, text=text)
    with BrokerApi(url) as broker:
        pushed, duplicates = _push_all(broker, items, batch_size, as_json=as_json)
    if not as_json:
        also = f" ({duplicates:,} duplicates)" if duplicates else ""
        say(f"Pushed {pushed:,} message{'' if pushed == 1 else 's'} to {queue}{also}.")


def _header(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise Failure(f"--header {given!r} is invalid: use NAME=VALUE.", Exit.USAGE)
    return name, value


def _push_all(broker: BrokerApi, items: Iterator[Item], batch_size: int, *, as_json: bool) -> tuple[int, int]:
    """Push in batches, up to the first line that is not JSON. Returns (all, duplicates)."""
    pushed = duplicates = 0
    problem: NotJson | None = None
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} messages"))
    with Progress(*columns, console=err(), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("push", total=None)
        while problem is None:
            batch, problem = _next_batch(items, batch_size)
            if not batch:
                break
            for result in broker.post("push", body={"items": batch}):
                duplicates += result.get("status") == "duplicate"
                if as_json:
                    print_json_line(result)
            pushed += len(batch)
            progress.update(task, completed=pushed)
    if problem is not None:
        before = (
            f"The {pushed:,} messages before it were pushed, none after it."
            if pushed
            else "Nothing was pushed."
        )
        raise Failure(f"{problem} {before}", Exit.USAGE)
    return pushed, duplicates


def _next_batch(items: Iterator[Item], size: int) -> tuple[list[Item], NotJson | None]:
    batch: list[Item] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                break
    except NotJson as problem:
        return batch, problem
    return batch, None


def _items_of_lines(lines: Iterable[bytes], common: Item, *, text: bool) -> Iterator[Item]:
    for number, line in enumerate(lines, start=1):
        raw = line.rstrip(b"\r\n")
        if text or raw.strip():
            yield {**common, "payload": _payload(raw, f"Line {number}", text=text)}


def _payload(raw: bytes, where: str, *, text: bool) -> str | msgspec.Raw:
    try:
        if text:
            return raw.decode()
        msgspec.json.decode(raw)
    except UnicodeDecodeError:
        raise NotJson(f"{where} is not valid UTF-8.") from None
    except msgspec.DecodeError as error:
        raise NotJson(f"{where} is not valid JSON ({error}); use --text to push plain text.") from None
    # As it was given, so that no number loses digits on the way.
    return msgspec.Raw(raw)
