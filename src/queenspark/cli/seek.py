"""`queenspark seek`: move a consumer group in a queue."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.options import AsJson, Partition, QueueName, Url
from queenspark.cli.output import print_json, say


def seek(
    queue: QueueName,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the consumer group.")],
    to_end: Annotated[bool, typer.Option("--to-end", help="Skip all existing messages.")] = False,
    to_beginning: Annotated[bool, typer.Option("--to-beginning", help="Replay all messages.")] = False,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="To the first message at or after this ISO time (UTC if it has no zone)."
        ),
    ] = None,
    partition: Partition = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Seek a group to the end, the beginning or a time. Its leases are revoked."""
    if [to_end, to_beginning, to is not None].count(True) != 1:
        raise Failure("Pass exactly one of --to-end, --to-beginning and --to TIME.", Exit.USAGE)
    body: dict[str, Any]
    if to is not None:
        body = {"timestamp": timestamp(to)}
    else:
        body = {"toEnd": True} if to_end else {"toBeginning": True}
    path = ["consumer-groups", group, "queues", queue]
    if partition is not None:
        path += ["partitions", partition]
    with BrokerApi(url) as broker:
        response = broker.post(*path, "seek", body=body)
    if as_json:
        return print_json(response)
    target = "the end" if to_end else "the beginning" if to_beginning else body["timestamp"]
    of = queue if not partition else f"{queue}, partition {partition}"
    return say(f"The group {group} continues from {target} of {of}.")


def timestamp(text: str) -> str:
    """A user's time in the format of the broker."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"Invalid time {text!r}: use ISO 8601, such as 2030-01-31T12:00:00Z.", Exit.USAGE
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
