"""Unexpected errors: a failing token function is retried, and no exception freezes a consumer."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queenspark import AsyncBatch, AsyncQueen, Batch, Event, InvalidValue, Queen, Unreachable, Window
from queenspark.client.sync import acks, leases
from queenspark.client.sync.transport import Transport
from tests.broker_process import Broker
from tests.client.conftest import SOON, lease, sealed
from tests.client.proxy import CUT_AFTER, Proxy
from tests.streams.stream_api import StreamApi
from tests.wire.deadline import eventually


class Token:
    """A token function that fails the next `failures` times."""

    def __init__(self) -> None:
        self.failures = 0
        self.failed = 0

    def __call__(self) -> str:
        if self.failures:
            self.failures -= 1
            self.failed += 1
            raise OSError("no vault")
        return "token"


@pytest.fixture
def token() -> Token:
    """A token function."""
    return Token()


@pytest.fixture
def client(shared_broker: Broker, token: Token) -> Iterator[Queen]:
    """A client with this token function, and without retries."""
    with Queen(shared_broker.url, token=token, retries=0) as queen:
        yield queen


def ended(work: Callable[[], None]) -> BaseException | None:
    """Run this in a thread; it ends soon. Return its exception."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - returned
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SOON)
    assert not thread.is_alive()
    return raised[0] if raised else None


def break_calls(monkeypatch: pytest.MonkeyPatch, step: str, failures: int = 1) -> None:
    """Let the next requests with this step in their path fail with an OSError."""
    whole = Transport.call
    left = [OSError("out of files")] * failures

    def call(self: Transport, method: str, *path: str, **more: Any) -> Any:
        if step in path and left:
            raise left.pop()
        return whole(self, method, *path, **more)

    monkeypatch.setattr(Transport, "call", call)


def test_a_failing_token_function_is_named_and_nothing_was_sent(client: Queen, token: Token) -> None:
    token.failures = 1
    with pytest.raises(Unreachable, match=r"^the token function failed \(OSError: no vault\)") as caught:
        client.queue("orders").push(1)
    assert not caught.value.maybe_done
    assert isinstance(caught.value.__cause__, OSError)


def test_a_failing_token_function_is_called_again(shared_broker: Broker, token: Token, queue: str) -> None:
    with Queen(shared_broker.url, token=token, retries=2) as queen:
        token.failures = 2
        queen.queue(queue).push(1)
    assert token.failed == 2


def test_a_request_that_was_sent_before_the_token_function_failed_is_in_doubt(
    proxy: Proxy, token: Token, queue: str
) -> None:
    """It fails at the second attempt; the first one may have been carried out."""

    def fail() -> str:
        token.failures = len(proxy.requests)
        return token()

    proxy.fail("/push", CUT_AFTER)
    with (
        Queen(proxy.url, token=fail, retries=1) as queen,
        pytest.raises(Unreachable, match="token function") as caught,
    ):
        queen.queue(queue).push(1)
    assert caught.value.maybe_done


@pytest.mark.parametrize("nothing", [None, 7])
def test_a_token_function_returns_a_string(shared_broker: Broker, nothing: Any) -> None:
    with (
        Queen(shared_broker.url, token=lambda: nothing) as queen,
        pytest.raises(InvalidValue, match=r"^the token function returned (None|7): "),
    ):
        queen.admin.status()


def test_a_consumer_continues_when_the_token_function_fails(client: Queen, token: Token, queue: str) -> None:
    client.queue(queue).push(list(range(50)))
    seen: list[int] = []

    def handler(batch: Batch) -> None:
        seen.append(batch[0].data)
        if len(seen) == 20:
            token.failures = 3

    assert ended(lambda: client.queue(queue).limit(50).consume(handler)) is None
    assert sorted(seen) == list(range(50))
    assert len(client.queue(queue).pop()) == 0


def test_a_consumer_that_gets_no_token_says_so(
    client: Queen, token: Token, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, and not again for each attempt."""
    token.failures = 3
    client.queue(queue).idle(1).consume(print)
    (said,) = [record.getMessage() for record in caplog.records if record.name == "queenspark.client"]
    assert said.startswith(f"{queue}: the token function failed (OSError: no vault)")


def test_the_asynchronous_consumer_continues_too(shared_broker: Broker, token: Token, queue: str) -> None:
    seen: list[int] = []

    async def handler(batch: AsyncBatch) -> None:
        seen.append(batch[0].data)
        if len(seen) == 20:
            token.failures = 3

    async def main() -> None:
        async with AsyncQueen(shared_broker.url, token=token, retries=0) as queen:
            await queen.queue(queue).push(list(range(50)))
            await asyncio.wait_for(queen.queue(queue).limit(50).consume(handler), SOON)
            assert len(await queen.queue(queue).pop()) == 0

    asyncio.run(main())
    assert sorted(seen) == list(range(50))


def test_the_asynchronous_consumer_raises_when_its_acks_end(
    shared_broker: Broker, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(groups: Any) -> None:
        raise RuntimeError("cannot send")

    async def main() -> None:
        async with AsyncQueen(shared_broker.url) as queen:
            await queen.queue(queue).push(1)
            with pytest.raises(RuntimeError, match="cannot send"):
                await asyncio.wait_for(queen.queue(queue).consume(lambda batch: None), SOON)

    monkeypatch.setattr("queenspark.client.aio.acks._settle", fail)
    asyncio.run(main())


def test_an_unexpected_error_of_an_ack_is_told_and_the_others_are_sent(
    queen: Queen,
    stream: StreamApi,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for key in "abcd":
        sealed(stream, 1, key=key)
    break_calls(monkeypatch, "batch")
    events: list[Event] = []
    consumer = queen.consumer(stream.name, "g", on_event=events.append)
    assert ended(lambda: consumer.process(lambda window: None, limit=4)) is None
    kinds = Counter(event.kind for event in events)
    assert kinds["unacked"] <= 1
    assert kinds["done"] + kinds["unacked"] == 4
    assert "unexpected error while sending acks" in caplog.text
    assert "out of files" in caplog.text


def test_a_lease_is_renewed_after_an_unexpected_error(
    queen: Queen,
    stream: StreamApi,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lease(stream, 1500)
    sealed(stream, 1)
    break_calls(monkeypatch, "extend")
    events: list[Event] = []

    def handler(window: Window) -> None:
        eventually(lambda: "renewed" in [event.kind for event in events])

    queen.consumer(stream.name, "g", on_event=events.append).process(handler, limit=1)
    assert [event.kind for event in events if event.kind != "renewed"] == ["delivered", "unreachable", "done"]
    assert "unexpected error while renewing" in caplog.text


@pytest.mark.parametrize(
    "broken",
    [(acks, "_settle"), (acks.Acks, "run"), (leases.Keeper, "run")],
    ids=["while sending acks", "the acks", "the leases"],
)
def test_process_raises_when_its_background_work_ends(
    queen: Queen, stream: StreamApi, monkeypatch: pytest.MonkeyPatch, broken: tuple[Any, str]
) -> None:
    """Without a limit: it stops by itself."""
    sealed(stream, 1)

    def fail(*given: Any) -> None:
        raise RuntimeError("cannot start a thread")

    monkeypatch.setattr(*broken, fail)
    error = ended(lambda: queen.consumer(stream.name, "g").process(lambda window: None))
    assert isinstance(error, RuntimeError)


def test_a_manual_ack_does_not_wait_for_acks_that_are_never_sent(
    queen: Queen, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queen.queue(queue).push(list(range(4)))

    def fail(*given: Any) -> None:
        raise RuntimeError("cannot send")

    monkeypatch.setattr(acks, "_settle", fail)

    def handler(message: Any) -> None:
        if message.data == 2:
            message.ack()

    error = ended(lambda: queen.queue(queue).batch(4).each().limit(4).consume(handler))
    assert isinstance(error, RuntimeError)
