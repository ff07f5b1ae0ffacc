"""Following a queue: messages as they arrive, without taking them from anybody."""

import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.cli.output import say

WAIT_SECONDS = 20.0
BATCH = 100


def follow(
    broker: BrokerApi,
    queue: str,
    name: str,
    show: Callable[[dict[str, Any]], None],
    *,
    partition: str | None = None,
    from_beginning: bool = False,
    count: int | None = None,
) -> None:
    """Show messages of a queue until Ctrl-C, or `count` of them; `name` is what a person calls the queue.

    It reads as a consumer group of its own, which is deleted at the end.
    """
    group = f"tail-{secrets.token_hex(6)}"
    path = ["pop", "queue", queue] + (["partition", partition] if partition is not None else [])
    query: dict[str, Any] = {
        "consumerGroup": group,
        "subscriptionMode": "all" if from_beginning else "new",
        "autoAck": True,
        "partitions": BATCH,
    }
    left = count
    with _until_stopped(), _group_goes_away(broker, group):
        # The first contact fixes the place where the group begins; only then is the queue followed.
        answer = broker.get(*path, query={**query, "batch": min(BATCH, left or BATCH)})
        say(f"Following {name}; Ctrl-C ends it.")
        while True:
            for message in answer["messages"] if answer else []:
                show(message)
                left = None if left is None else left - 1
            if left == 0:
                return
            query |= {"batch": min(BATCH, left or BATCH), "wait": True, "timeout": round(WAIT_SECONDS * 1000)}
            answer = broker.get(*path, query=query, patience=WAIT_SECONDS)


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
