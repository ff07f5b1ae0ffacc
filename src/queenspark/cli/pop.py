"""`queenspark pop`: consume messages of a queue."""

from contextlib import suppress
from difflib import get_close_matches
from typing import Annotated, Any

import msgspec
import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.options import AsJson, Group, Partition, QueueName, Url, duration
from queenspark.cli.output import print_json_line, print_table, say

_MOST_NAMES = 1000  # to find the nearest one
COLUMNS = [
    ("partition", "partition"),
    ("transaction id", "transactionId"),
    ("created", "createdAt"),
    ("retries", "retryCount"),
    ("headers", "shown_headers"),
    ("data", "shown"),
]


def pop(
    queue: QueueName,
    group: Group = None,
    partition: Partition = None,
    batch: Annotated[int, typer.Option(min=1, help="Maximum number of messages.")] = 1,
    wait: Annotated[
        float, typer.Option(parser=duration, metavar="SECONDS", help="How long to wait for a message.")
    ] = 0,
    ack: Annotated[
        bool, typer.Option("--ack/--no-ack", help="Acknowledge the messages, or leave them leased.")
    ] = True,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Pop messages, print and acknowledge them. Exit code 3 if there is none."""
    path = ["pop", "queue", queue] + (["partition", partition] if partition is not None else [])
    query: dict[str, Any] = {"batch": batch, "partitions": batch, "consumerGroup": group}
    if wait:
        query |= {"wait": True, "timeout": round(wait * 1000)}
    with BrokerApi(url) as broker:
        response = broker.get(*path, query=query, patience=wait)
        messages: list[dict[str, Any]] = response["messages"] if response else []
        if not messages:
            raise Failure(_nothing(broker, queue), Exit.NOTHING)
        print_messages(messages, as_json=as_json)
        if ack:
            _acknowledge(broker, messages, group)
        elif not as_json:
            say(f"Not acknowledged; lease {messages[0].get('leaseId')}.")


def _nothing(broker: BrokerApi, queue: str) -> str:
    """The reason for an empty pop: the queue is empty, or its name is misspelled."""
    listed = "`queenspark queues` lists the queues with their counts."
    with suppress(Failure):  # the caller may lack the right to read queues
        if not broker.exists("resources", "queues", queue):
            page = broker.get("resources", "queues", query={"limit": _MOST_NAMES})
            close = get_close_matches(queue, [each["name"] for each in page["queues"]], 1)
            return f"The queue {queue} does not exist; {f'did you mean {close[0]}?' if close else listed}"
    return f"No message available in {queue}; {listed}"


def print_messages(messages: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print messages as lines of JSON or as a table."""
    if as_json:
        for message in messages:
            print_json_line(message)
    else:
        print_table([_row(message) for message in messages], COLUMNS)


def headers_of(message: dict[str, Any]) -> str | None:
    """The headers of a message on one line, as `push --header` takes them; None when it has none."""
    headers: dict[str, str] = message.get("headers") or {}
    return " ".join(f"{name}={value}" for name, value in headers.items()) or None


def _row(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "shown": as_text(message.get("data")), "shown_headers": headers_of(message)}


def as_text(data: Any) -> str:
    """A payload as JSON on one line."""
    return msgspec.json.encode(data).decode()


def _acknowledge(broker: BrokerApi, messages: list[dict[str, Any]], group: str | None) -> None:
    names = ("transactionId", "partitionId", "leaseId")
    acks = [{**{name: message[name] for name in names}, "status": "completed"} for message in messages]
    body: dict[str, Any] = {"acknowledgments": acks}
    if group is not None:
        body["consumerGroup"] = group
    refused = [result for result in broker.post("ack", "batch", body=body) if not result.get("success")]
    if refused:
        reason = refused[0].get("error") or "no reason given"
        raise Failure(f"The broker rejected {len(refused)} of {len(messages)} acks: {reason}.")
