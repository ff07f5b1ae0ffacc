"""Following a queue: messages as they arrive, without consuming them."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.cli.output import say
from queenspark.signals import handlers_kept, on_stop

WAIT_SECONDS = 1.0  # of one poll, and so the longest time until Ctrl-C takes effect
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
    """Show messages of a queue until Ctrl-C, or `count` of them; `name` is the display name.

    It uses a temporary consumer group.
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
    with _stopped_by_signals() as stopping, _group_goes_away(broker, group):
        # The first pop sets the group's starting position.
        response = broker.get(*path, query={**query, "batch": min(BATCH, left or BATCH)})
        say(f"Following {name}; press Ctrl-C to stop.")
        while not stopping.asked:
            for message in response["messages"] if response else []:
                show(message)
                left = None if left is None else left - 1
            if left == 0:
                return
            query |= {"batch": min(BATCH, left or BATCH), "wait": True, "timeout": round(WAIT_SECONDS * 1000)}
            response = broker.get(*path, query=query, patience=WAIT_SECONDS)


class _Stopping:
    """Whether a signal has arrived.

    The first one takes effect between two requests: an abandoned poll could still be in flight when the group
    is deleted, and recreate it. A second one ends the block at once.
    """

    asked = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def _stopped_by_signals() -> Iterator[_Stopping]:
    """Ctrl-C, SIGTERM and SIGHUP within the block: none is an error."""
    stopping = _Stopping()
    with handlers_kept(), suppress(KeyboardInterrupt):
        on_stop(stopping.on_signal)
        yield stopping


@contextmanager
def _group_goes_away(broker: BrokerApi, group: str) -> Iterator[None]:
    try:
        yield
    finally:
        try:
            broker.delete("consumer-groups", group, query={"deleteMetadata": True})
        except Failure as failure:
            say(f"Could not delete the consumer group {group}: {failure}")
        except KeyboardInterrupt:
            say(f"The consumer group {group} may not have been deleted.")
