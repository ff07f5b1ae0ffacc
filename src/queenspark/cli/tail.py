"""`queenspark tail`: print messages as they arrive, without consuming them."""

from typing import Annotated, Any

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.following import follow
from queenspark.cli.options import AsJson, Partition, QueueName, Url
from queenspark.cli.output import out, print_json_line
from queenspark.cli.pop import as_text, headers_of


def tail(
    queue: QueueName,
    partition: Partition = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Print existing entries first, then follow.")
    ] = False,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N messages.")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Print messages of a queue as they arrive, until Ctrl-C, without affecting consumers.

    It uses a temporary consumer group.
    """
    show = print_json_line if as_json else _print_message
    with BrokerApi(url) as broker:
        follow(broker, queue, queue, show, partition=partition, from_beginning=from_beginning, count=count)


def _print_message(message: dict[str, Any]) -> None:
    facts = (message.get("createdAt"), message.get("partition"), message.get("transactionId"))
    headers = headers_of(message)
    more = () if headers is None else (headers,)
    out().print(*facts, *more, as_text(message.get("data")), soft_wrap=True)
