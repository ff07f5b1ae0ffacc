"""Closing a client waits for deliveries in flight, and loses nothing."""

import threading

import pytest

from queenspark import (
    Batch,
    Queen,
    QueenError,
)
from tests.broker_process import Broker
from tests.client.conftest import SOON, stored, take
from tests.wire.api import Api


def test_close_waits_for_deliveries_in_flight_in_other_threads(shared_broker: Broker, queue: str) -> None:
    working, go_on = threading.Event(), threading.Event()

    def handler(batch: Batch) -> None:
        working.set()
        go_on.wait(SOON)

    queen = Queen(shared_broker.url)
    queen.queue(queue).push([1, 2])
    consumer = threading.Thread(target=queen.queue(queue).consume, args=[handler])
    consumer.start()
    working.wait(SOON)
    closer = threading.Thread(target=queen.close)
    closer.start()
    closer.join(0.3)
    assert closer.is_alive()
    go_on.set()
    for thread in (closer, consumer):
        thread.join(SOON)
        assert not thread.is_alive()
    with Queen(shared_broker.url) as other:
        assert take(other, queue).values("data") == [2]


def test_a_handler_cannot_close_its_client(queen: Queen, queue: str) -> None:
    """It would wait for itself."""
    queen.queue(queue).create(retry_limit=0)
    queen.queue(queue).push(1)
    queen.queue(queue).limit(1).consume(lambda batch: queen.close())
    assert "call stop()" in str(queen.queue(queue).dead_letters()[0].error_message)


def test_a_handler_may_use_another_client_and_close_it(
    queen: Queen, shared_broker: Broker, queue: str, api: Api
) -> None:
    queen.queue(queue).push(1)

    def handler(batch: Batch) -> None:
        with Queen(shared_broker.url) as other:
            other.queue(f"{queue}-out").buffered().push(batch[0].data)

    queen.queue(queue).limit(1).consume(handler)
    assert stored(api, f"{queue}-out") == [1]


def test_a_closed_client_says_so(shared_broker: Broker, queue: str) -> None:
    queen = Queen(shared_broker.url)
    queen.close()
    queen.close()
    for use in (queen.queue(queue).pop, lambda: queen.queue(queue).consume(print), queen.admin.status):
        with pytest.raises(QueenError, match="closed"):
            use()
    with pytest.raises(QueenError, match="closed"):
        queen.queue(queue).buffered().push(1)
