"""Pushing blocks of records: several requests at a time, in order within a partition.

A partition belongs to a lane, and a lane sends one request after the other. A block is done when all lanes
have sent their part of it; blocks are given back in order.
"""

import threading
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from queenspark.cli.files.records import BadRecord, Record
from queenspark.client.brokers import delay
from queenspark.client.errors import PASSING, NotAllowed, NotFound, QueueFull, Refused
from queenspark.client.sync.transport import Transport

LANES = 4
MOST_BLOCKS = 8
"""Blocks in flight: with their size this bounds the memory."""

MOST_FAILURES = 12
"""Failed tries of one request, about half a minute, that end the import. A full queue is not a failure."""

MOST_REFUSED = 64
"""Rejected records in a row after which the whole import counts as rejected."""


@dataclass(slots=True)
class Item:
    """A record in flight: its partition and transactionId."""

    record: Record
    partition: str
    transaction_id: str


@dataclass(slots=True)
class Block:
    """Records that follow each other in a file, up to an offset."""

    offset: int
    number: int
    digest: str
    items: list[Item] = field(default_factory=list)
    skipped: int = 0
    #: Filled in when the block is done.
    duplicates: int = 0
    refused: list[BadRecord] = field(default_factory=list)


class Interrupted(Exception):
    """Another request failed, or the command was stopped: this one was not sent."""


class _Pushed(msgspec.Struct):
    status: Literal["queued", "duplicate"]


class Lanes:
    """Pushes blocks to a queue."""

    def __init__(self, transport: Transport, queue: str) -> None:
        self._transport = transport
        self._queue = queue
        self._lanes = [ThreadPoolExecutor(1, f"lane-{number}") for number in range(LANES)]
        self._pending: deque[tuple[Block, list[Future[tuple[int, list[BadRecord]]]]]] = deque()
        self._stopped = threading.Event()
        #: Whether requests wait for room in the queue.
        self.queue_is_full = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        for lane in self._lanes:
            lane.shutdown(wait=True)

    def send(self, block: Block) -> Iterator[Block]:
        """Push a block; yields blocks that are done by now, and waits while too many are not."""
        parts: dict[int, list[Item]] = {}
        for item in block.items:
            parts.setdefault(zlib.crc32(item.partition.encode()) % LANES, []).append(item)
        futures = [self._lanes[lane].submit(self._part, items) for lane, items in parts.items()]
        self._pending.append((block, futures))
        while self._pending and (len(self._pending) >= MOST_BLOCKS or self._first_is_done()):
            yield self._next()

    def flush(self) -> Iterator[Block]:
        """Wait for all blocks; a client's error comes after the blocks before it."""
        while self._pending:
            yield self._next()

    def stop(self) -> None:
        """Send nothing more. Requests in flight are completed, blocks after them are Interrupted."""
        self._stopped.set()

    def _first_is_done(self) -> bool:
        return all(future.done() for future in self._pending[0][1])

    def _next(self) -> Block:
        block, futures = self._pending[0]
        for future in futures:
            duplicates, refused = future.result()
            block.duplicates += duplicates
            block.refused += refused
        self._pending.popleft()
        block.refused.sort(key=lambda bad: bad.line)
        return block

    def _part(self, items: list[Item]) -> tuple[int, list[BadRecord]]:
        try:
            return self._push(items)
        except BaseException:
            self.stop()
            raise

    def _push(self, items: list[Item]) -> tuple[int, list[BadRecord]]:
        """Push items in order; rejected ones are found by bisection."""
        try:
            results = self._request(items)
        except (*PASSING, NotAllowed, NotFound):
            raise  # it is not about single records
        except Refused as refused:
            if len(items) == 1:
                record = items[0].record
                return 0, [BadRecord(record.line, record.offset, f"rejected: {refused}")]
            half = len(items) // 2
            first, second = self._push(items[:half]), self._push(items[half:])
            if len(first[1]) + len(second[1]) == len(items) >= MOST_REFUSED:
                raise  # it is not about single records
            return first[0] + second[0], first[1] + second[1]
        return sum(result.status == "duplicate" for result in results), []

    def _request(self, items: list[Item]) -> list[_Pushed]:
        body: Any = {
            "items": [
                {
                    "queue": self._queue,
                    "partition": item.partition,
                    "transactionId": item.transaction_id,
                    "payload": item.record.payload,
                }
                for item in items
            ]
        }
        failures = 0
        while not self._stopped.is_set():
            try:
                pushed: list[_Pushed] = self._transport.call("POST", "push", body=body, kind=list[_Pushed])
            except PASSING as error:
                self.queue_is_full = isinstance(error, QueueFull)
                failures += 1
                if failures > MOST_FAILURES and not self.queue_is_full:
                    raise
                self._stopped.wait(delay(failures))
            else:
                self.queue_is_full = False
                return pushed
        raise Interrupted
