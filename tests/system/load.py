"""Producers and consumers that keep working through all failures of the pipeline."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from types import TracebackType
from typing import Any, Self

from tests.system.system import Stream, System
from tests.windows.oracle import Row
from tests.wire.api import Api, Json, responded

AT_ONCE = 40  # windows of one poll
POLL_MS = 2000
RETRIES = 20


def fingerprint(payload: Any) -> int:
    """A number for a message: two sets of as many messages with the same sum are the same set."""
    return int.from_bytes(blake2b(str(payload["n"]).encode(), digest_size=6).digest(), "big")


def event_us(payload: Any) -> int | None:
    """The event time that a producer gave."""
    at = payload["at"]
    return at * 1000 if isinstance(at, int) else None


def repeated(send: Callable[[], Any]) -> Any:
    """The response to a request, retried while the broker asks for that."""
    for _ in range(RETRIES):
        response = send()
        if response.status_code != 503 or not response.json()["retryable"]:
            break
        time.sleep(0.1)
    return response


class Threads:
    """Threads that end with the block; the first failure of one is raised then."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def run(self, work: Callable[..., None], *args: Any) -> None:
        """Start a thread."""

        def guarded() -> None:
            try:
                work(*args)
            except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
                self._failures.append(error)

        self._threads.append(threading.Thread(target=guarded, daemon=True))
        self._threads[-1].start()

    def check(self) -> None:
        """Raise the error of a thread."""
        if self._failures:
            raise self._failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join(60)
        if error is None:
            self.check()


class Producers(Threads):
    """Several producers, with a number of messages, a rate per second, and batches of all sizes.

    With `allow` they push at that rate only as many as they are allowed to, and the others at a trickle.
    """

    def __init__(
        self,
        url: str,
        queues: Sequence[str],
        *,
        messages: int,
        per_second: float,
        keys: int,
        seed: int,
        count: int = 4,
        drip_seconds: float = 0.2,
        first: int = 0,
        retry: bool = False,
    ) -> None:
        super().__init__()
        self._url = url
        self._queues = queues
        self._keys = keys
        self._numbers = iter(range(first, first + messages))
        self._lock = threading.Lock()
        self._left = messages
        self._brisk = messages
        self._pause = 20 * count / per_second  # a batch has 20 messages on average
        self._drip_seconds = drip_seconds
        self._send = repeated if retry else _once
        for number in range(count):
            self.run(self._produce, random.Random(f"{seed} {number}"))

    def allow(self, messages: int) -> None:
        """Let them push this many of the remaining messages; then only a trickle."""
        self._brisk = messages

    @property
    def allowed(self) -> int:
        """Number of messages still to be pushed at that pace."""
        return min(self._brisk, self._left)

    def finish(self) -> None:
        """Push the remaining messages without pauses."""
        self._brisk, self._pause = self._left, 0
        while self._left:
            self.check()
            time.sleep(0.02)

    def _produce(self, chance: random.Random) -> None:
        with Api(self._url) as api:
            while not self.stopped.is_set():
                with self._lock:
                    is_brisk = self._brisk > 0
                    numbers = list(islice(self._numbers, chance.choice((1, 5, 14, 60)) if is_brisk else 1))
                    self._brisk -= len(numbers)
                if not numbers:
                    return
                items = [self._item(chance, number) for number in numbers]
                response = self._send(partial(api.push_items, items))
                assert response.status_code == 201, response.text
                with self._lock:
                    self._left -= len(numbers)
                time.sleep(self._pause * chance.uniform(0, 2) if is_brisk else self._drip_seconds)

    def _item(self, chance: random.Random, number: int) -> Json:
        at: Any = int(time.time() * 1000) + chance.choice((0, 0, 0, 40, -50, -900, -7000))
        if chance.random() < 0.01:
            at = "never"
        return {
            "queue": chance.choice(self._queues),
            "partition": f"key {chance.randrange(self._keys)}",
            "transactionId": str(number),
            "payload": {"n": number, "at": at},
        }


class Consumers(Threads):
    """Consumers of several groups; they take and ack windows until they are told to stop."""

    def __init__(self, url: str, *, retry: bool = False) -> None:
        super().__init__()
        self._url = url
        self._send = repeated if retry else _once
        self._lock = threading.Lock()
        self._taken: dict[tuple[str, str], list[tuple[str, int, int, int]]] = {}

    def consume(self, stream: Stream, group: str, consumers: int = 1) -> None:
        """Start this many consumers of a stream's windows."""
        self._taken[stream.name, group] = []
        for _ in range(consumers):
            self.run(self._consume, stream.name, group)

    def taken(self, stream: Stream, group: str) -> Counter[tuple[str, int, int, int]]:
        """The windows that a group got, by id and revision, with count and fingerprint of the messages."""
        with self._lock:
            return Counter(self._taken[stream.name, group])

    def _consume(self, name: str, group: str) -> None:
        body = {"streamName": name, "consumerGroup": group, "timeout": POLL_MS, "maxWindows": AT_ONCE}
        with Api(self._url) as api:
            while not self.stopped.is_set():
                response = self._send(partial(api.post, "/api/v1/stream/poll", body))
                if response.status_code == 204:
                    continue
                for window in responded(response, 200)["windows"]:
                    ack = {"windowId": window["id"], "leaseId": window["leaseId"], "success": True}
                    response = self._send(partial(api.post, "/api/v1/stream/ack", ack))
                    assert responded(response, 200)["acked"]
                    data = [message["data"] for message in window["messages"]]
                    seen = (window["id"], window["revision"], len(data), sum(map(fingerprint, data)))
                    with self._lock:
                        self._taken[name, group].append(seen)


def _once(send: Callable[[], Any]) -> Any:
    return send()


def expected_taken(rows: Sequence[Row]) -> Counter[tuple[str, int, int, int]]:
    """The expected windows of a group."""
    return Counter((row.window_id, row.revision, row.count, int(row.aggregates["n"] or 0)) for row in rows)


def wait_until(true: Callable[[], bool], within: float, every: float = 0.1) -> bool:
    """Wait for a condition; return whether it became true in time."""
    deadline = time.monotonic() + within
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def sealed_counts(system: System) -> dict[int, int]:
    """Number of windows of each stream."""
    return dict(
        system.run(
            "SELECT s.id, count(m.id) FROM queenspark.streams s"
            " LEFT JOIN queenspark.messages m ON m.queue_id = s.queue_id GROUP BY s.id"
        )
    )
