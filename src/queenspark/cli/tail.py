"""`queenspark tail`: watch messages arrive without taking them from anybody."""

import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.cli.options import AsJson, Partition, QueueName, Url
from queenspark.cli.output import out, print_json_line, say
from queenspark.cli.pop import as_text

WAIT_SECONDS = 20.0
BATCH = 100


def tail(
    queue: QueueName,
    partition: Partition = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="First print what is there, then follow.")
    ] = False,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="End after N messages.")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Follow a queue until Ctrl-C; consumers notice nothing.

    It reads as a consumer group of its own, which is deleted at the end.
    """
    group = f"tail-{secrets.token_hex(6)}"
    path = ["pop", "queue", queue] + (["partition", partition] if partition is not None else [])
    mode = "all" if from_beginning else "new"
    query: dict[str, Any] = {
        "consumerGroup": group,
        "subscriptionMode": mode,
        "autoAck": True,
        "partitions": BATCH,
    }
    left = count
    with BrokerApi(url) as broker, _until_stopped(), _group_goes_away(broker, group):
        # The first contact fixes the place where the group begins; only then is the queue followed.
        answer = broker.get(*path, query={**query, "batch": min(BATCH, left or BATCH)})
        say(f"Following {queue}; Ctrl-C ends it.")
        while True:
            for message in answer["messages"] if answer else []:
                _print_message(message, as_json=as_json)
                left = None if left is None else left - 1
            if left == 0:
                return
            query |= {"batch": min(BATCH, left or BATCH), "wait": True, "timeout": round(WAIT_SECONDS * 1000)}
            answer = broker.get(*path, query=query, patience=WAIT_SECONDS)


def _print_message(message: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json_line(message)
    else:
        facts = (message.get("createdAt"), message.get("partition"), message.get("transactionId"))
        out().print(*facts, as_text(message.get("data")), soft_wrap=True)


@contextmanager
def _until_stopped() -> Iterator[None]:
    """SIGTERM ends the block like Ctrl-C does, and neither is an error."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _group_goes_away(broker: BrokerApi, group: str) -> Iterator[None]:
    try:
        yield
    finally:
        try:
            broker.delete("consumer-groups", group, query={"deleteMetadata": True})
        except Failure as failure:
            say(f"The consumer group {group} is still there: {failure}")
