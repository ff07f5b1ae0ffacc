"""The main promises once more, with the client for asyncio."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from queenspark import (
    AsyncBatch,
    AsyncLeasedMessage,
    AsyncQueen,
    AsyncWindow,
    Event,
    NotSent,
    Outgoing,
    QueenError,
    TransactionRefused,
    Unreachable,
)
from tests.broker_process import Broker
from tests.client.conftest import sealed, stored
from tests.client.proxy import CUT_AFTER, CUT_BEFORE, Proxy
from tests.horizon import wait_for_horizon
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

SOON = 10
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def queen(shared_broker: Broker) -> AsyncIterator[AsyncQueen]:
    """A client of the broker."""
    async with AsyncQueen(shared_broker.url) as queen:
        yield queen


@pytest.fixture
async def far(proxy: Proxy) -> AsyncIterator[AsyncQueen]:
    """A client that reaches the broker only through the proxy."""
    async with AsyncQueen(proxy.url, timeout=3, retries=3) as queen:
        yield queen


async def test_push_pop_and_ack(queen: AsyncQueen, queue: str, shared_broker: Broker) -> None:
    await queen.queue(queue).create(retry_delay=0, lease_time="30s")
    (pushed,) = await queen.queue(queue).partition("p").push({"n": 1}, transaction_id="t")
    assert not pushed.duplicate
    await queen.queue(queue).partition("p").push([{"n": 2}, {"n": 3}])
    wait_for_horizon(shared_broker.database_url)
    batch = await queen.queue(queue).batch(9).pop(wait=SOON)
    assert batch.values("data.n") == [1, 2, 3]
    await batch[0].ack()
    await batch[1].renew(60)
    await batch[1].nack("later")
    await batch.ack()
    (again,) = await queen.queue(queue).pop(wait=SOON)
    assert (again.data, again.retries) == ({"n": 2}, 1)
    assert (await queen.queue(queue).describe())["messages"]["total"] == 3
    assert "queues" in await queen.admin.status()


async def test_coroutines_and_plain_functions_are_handlers(queen: AsyncQueen, queue: str) -> None:
    await queen.queue(queue).push([1, 2, 3, 4])
    seen: list[tuple[Any, bool]] = []
    main = threading.get_ident()

    def note(message: AsyncLeasedMessage) -> None:
        seen.append((message.data, threading.get_ident() == main))

    async def noting(message: AsyncLeasedMessage) -> None:
        note(message)

    each = queen.queue(queue).each().limit(1)
    await each.consume(note)
    await each.consume(noting)
    await each.consume(lambda message: noting(message))  # noqa: PLW0108 - a plain function that returns a coroutine
    await each.consume(partial(noting))
    assert seen == [(1, False), (2, True), (3, True), (4, True)]
    assert len(await queen.queue(queue).pop()) == 0


async def test_plain_handlers_work_at_once_and_leave_the_threads_of_the_loop_alone(
    queen: AsyncQueen, queue: str
) -> None:
    """More than the loop's thread pool, which is needed for DNS lookups of renewals."""
    workers = 40
    await queen.queue(queue).push([Outgoing(n, partition=str(n)) for n in range(workers)])
    meeting = threading.Barrier(workers + 1, timeout=30)

    async def fetch() -> None:
        await asyncio.to_thread(meeting.wait)

    consumer = queen.queue(queue).concurrency(workers).limit(workers)
    await asyncio.gather(consumer.consume(lambda batch: meeting.wait()), fetch())
    assert (await queen.queue(queue).describe())["messages"]["processing"] == 0


async def test_a_handler_that_raises_nacks_with_the_reason(queen: AsyncQueen, queue: str) -> None:
    await queen.queue(queue).create(retry_limit=0)
    await queen.queue(queue).push([1, 2])

    async def handler(message: AsyncLeasedMessage) -> None:
        if message.data == 1:
            raise ValueError("no")

    await queen.queue(queue).batch(2).each().limit(3).consume(handler)
    assert [dead.error_message for dead in await queen.queue(queue).dead_letters()] == ["ValueError: no"]


async def test_a_handler_whose_own_task_was_cancelled_has_failed(queen: AsyncQueen, queue: str) -> None:
    """The consumer was not."""
    await queen.queue(queue).create(retry_limit=0)
    await queen.queue(queue).push([1, 2])

    async def handler(batch: AsyncBatch) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        if batch[0].data == 1:
            task.cancel()
            await task
        task.cancel()

    await queen.queue(queue).limit(2).consume(handler)
    assert [dead.data for dead in await queen.queue(queue).dead_letters()] == [1]


async def test_windows_are_processed_renewed_and_handed_over_once(
    far: AsyncQueen, proxy: Proxy, stream: StreamApi, queue: str, api: Api
) -> None:
    stream.define(partitioned=True, window_lease_timeout_ms=1500)
    sealed(stream, {"n": 1}, {"n": 2}, key="room")
    proxy.fail("/transaction", CUT_AFTER)
    events: list[Event] = []
    has_outlived_its_lease = asyncio.Event()

    def listen(event: Event) -> None:
        events.append(event)
        if [each.kind for each in events].count("renewed") == 4:
            has_outlived_its_lease.set()

    async def handler(window: AsyncWindow) -> dict[str, Any]:
        await asyncio.wait_for(has_outlived_its_lease.wait(), SOON)
        return window.aggregate(sum="data.n")

    consumer = far.consumer(stream.name, "g", on_event=listen)
    await consumer.process(handler, into=queue, limit=1)
    kinds = [event.kind for event in events]
    assert (kinds[0], kinds[-1]) == ("delivered", "done")
    assert kinds.count("renewed") >= 4
    assert stored(api, queue) == [{"sum": 3}]
    assert stream.empty()


async def test_a_network_error_in_the_ack_is_never_followed_by_a_nack(
    far: AsyncQueen, proxy: Proxy, stream: StreamApi
) -> None:
    sealed(stream, 1)
    proxy.fail("/ack", CUT_AFTER, *[CUT_BEFORE] * 5)
    events: list[Event] = []
    await far.consumer(stream.name, "g", on_event=events.append).process(lambda window: None, limit=1)
    assert [event.kind for event in events] == ["delivered", "done"]
    assert stream.end_waits() == []
    assert stream.empty()


async def test_pages_are_read_one_after_the_other(queen: AsyncQueen, stream: StreamApi) -> None:
    sealed(stream, 1, 2, 3)
    window = await queen.consumer(stream.name, "g").poll(wait=SOON, max_messages=2)
    assert window is not None
    assert [page.values("data") async for page in window.pages()] == [[1, 2], [3]]
    await window.ack()


@pytest.mark.parametrize("plain", [False, True], ids=["coroutine", "plain function"])
async def test_a_cancelled_consumer_leaves_its_window_to_be_delivered_again(
    queen: AsyncQueen, stream: StreamApi, plain: bool
) -> None:
    stream.define(partitioned=True, window_lease_timeout_ms=900)
    id_ = sealed(stream, 1)
    working, go_on = threading.Event(), threading.Event()
    events: list[Event] = []

    async def handler(window: AsyncWindow) -> None:
        working.set()
        await asyncio.sleep(60)

    def blocking(window: AsyncWindow) -> None:
        working.set()
        go_on.wait(60)

    consumer = queen.consumer(stream.name, "g", on_event=events.append)
    running = asyncio.create_task(consumer.process(blocking if plain else handler, concurrency=2))
    await asyncio.to_thread(working.wait, SOON)
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 5
    go_on.set()
    again = await queen.consumer(stream.name, "g").poll(wait=SOON)
    assert again is not None
    assert (again.id, again.retries) == (id_, 0)
    assert {event.kind for event in events} <= {"delivered", "renewed", "unreachable"}


async def test_several_consumers_share_a_loop(queen: AsyncQueen, stream: StreamApi) -> None:
    for key in "abcd":
        sealed(stream, 1, key=key)
    seen: list[tuple[str, str]] = []

    async def run(group: str) -> None:
        consumer = queen.consumer(stream.name, group)

        async def handler(window: AsyncWindow) -> None:
            seen.append((group, window.key))
            await asyncio.sleep(0)

        await consumer.process(handler, concurrency=2, limit=4)

    await asyncio.gather(run("g1"), run("g2"))
    assert sorted(seen) == [(group, key) for group in ("g1", "g2") for key in "abcd"]


async def test_a_plain_handler_can_stop_its_consumer(queen: AsyncQueen, stream: StreamApi) -> None:
    sealed(stream, 1, key="a")
    sealed(stream, 2, key="b")
    consumer = queen.consumer(stream.name, "g")
    seen: list[str] = []

    def handler(window: AsyncWindow) -> None:
        seen.append(window.key)
        consumer.stop()

    await asyncio.wait_for(consumer.process(handler), SOON)
    assert len(seen) == 1


async def test_buffered_pushes_are_flushed_in_order(
    proxy: Proxy, far: AsyncQueen, queue: str, api: Api
) -> None:
    proxy.fail("/push", CUT_AFTER, CUT_BEFORE)
    buffered = far.queue(queue).buffered()
    await asyncio.gather(*(buffered.push(number) for number in range(500)))
    await far.flush()
    assert stored(api, queue) == list(range(500))
    await buffered.push(Outgoing("bad", transaction_id="x" * 600))
    await buffered.push("good")
    with pytest.raises(NotSent) as not_sent:
        await far.flush()
    assert not_sent.value.payloads == ["bad"]
    assert stored(api, queue)[-1] == "good"


async def test_leaving_the_block_flushes(shared_broker: Broker, queue: str, api: Api) -> None:
    async with AsyncQueen(shared_broker.url, linger=60) as queen:
        await queen.queue(queue).buffered().push([1, 2])
    assert stored(api, queue) == [1, 2]


async def test_closing_waits_for_deliveries_in_flight(shared_broker: Broker, queue: str) -> None:
    working = asyncio.Event()
    seen: list[Any] = []

    async def handler(batch: AsyncBatch) -> None:
        working.set()
        await asyncio.sleep(0.5)
        seen.extend(batch.values("data"))

    async with AsyncQueen(shared_broker.url) as queen:
        await queen.queue(queue).push([1, 2])
        running = asyncio.create_task(queen.queue(queue).consume(handler))
        await working.wait()
    await running
    assert seen == [1]
    with pytest.raises(QueenError, match="closed"):
        await queen.queue(queue).pop()


async def test_a_transaction_happens_once_or_not_at_all(
    far: AsyncQueen, proxy: Proxy, queue: str, api: Api
) -> None:
    await far.queue(queue).push([1, 2])
    batch = await far.queue(queue).batch(2).pop(wait=SOON)
    proxy.fail("/transaction", CUT_AFTER)
    await far.transaction().ack(batch[0]).queue(f"{queue}-out").push("one").commit()
    with pytest.raises(TransactionRefused):
        await far.transaction().ack(batch).queue(f"{queue}-out").push("two").commit()
    assert stored(api, f"{queue}-out") == ["one"]


async def test_errors_are_those_of_the_other_client(proxy: Proxy, queue: str) -> None:
    async with AsyncQueen(proxy.url, retries=0) as queen:
        proxy.away()
        with pytest.raises(Unreachable):
            await queen.queue(queue).push(1)


async def test_headers_go_with_a_message(queen: AsyncQueen, queue: str) -> None:
    own = queen.queue(queue)
    await own.push([1, Outgoing(2, headers={"n": "2"})], headers={"tenant": "north"})
    await queen.transaction().queue(queue).push(3, headers={"n": "3"}).commit()
    found: list[dict[str, str]] = []
    while len(found) < 3:
        batch = await own.batch(9).pop(wait=SOON)
        found += [message.headers for message in batch]
        await batch.ack()
    assert found == [{"tenant": "north"}, {"tenant": "north", "n": "2"}, {"n": "3"}]


async def test_a_window_without_its_messages_can_still_be_read(queen: AsyncQueen, stream: StreamApi) -> None:
    sealed(stream, 1, 2)
    window = await queen.consumer(stream.name, "g").poll(wait=SOON, messages=False)
    assert window is not None
    assert list(window.messages) == []
    assert [page.values("data") async for page in window.pages()] == [[1, 2]]
    await window.ack()
