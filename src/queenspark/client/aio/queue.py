"""A queue: push, pop, consume, manage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, Self

from ..budget import at_least_one
from ..dead_letters import DeadLetter, DeadLetters
from ..duration import Duration, lease_seconds, milliseconds, seconds, whole_seconds
from ..errors import InvalidValue
from ..events import Listener
from ..outgoing import Pushed, items
from ..times import as_time
from ..wire import Popped
from .acks import AsyncAck
from .crew import AsyncCrew, Give, Verdict, Wish, attempt, reason_of
from .message import AsyncBatch, AsyncLeasedMessage, batch_of, runs_of
from .session import AsyncSession
from .tasks import checked

Start = Literal["earliest", "latest"] | datetime | str

_MOST_AHEAD = 1000  # messages per pop


@dataclass(frozen=True, kw_only=True)
class AsyncQueue:
    """A queue, with options for push and consume. Each option returns a new object."""

    _session: AsyncSession
    name: str
    _namespace: str | None = None
    _task: str | None = None
    _partition: str | None = None
    _group: str | None = None
    _batch: int = 1
    _auto_ack: bool = True
    _each: bool = False
    _concurrency: int = 1
    _limit: int | None = None
    _idle: float | None = None
    _start: Start = "earliest"
    _buffered: bool = False

    def namespace(self, name: str) -> Self:
        """Set the namespace for `create`."""
        return replace(self, _namespace=name)

    def task(self, name: str) -> Self:
        """Set the task for `create`."""
        return replace(self, _task=name)

    def partition(self, name: str) -> Self:
        """Push to and consume from this partition only. By default a push goes to `Default`."""
        return replace(self, _partition=name)

    def group(self, name: str) -> Self:
        """Consume as this group, which has its own cursor. Consumers without a group share one."""
        return replace(self, _group=name)

    def start(self, where: Start) -> Self:
        """Set the start of a new group: `earliest` (the default), `latest`, or a time."""
        return replace(self, _start=where)

    def batch(self, size: int) -> Self:
        """Fetch up to this many messages at a time, all of one partition."""
        return replace(self, _batch=at_least_one("batch", size))

    def each(self) -> Self:
        """Make `consume` call the handler with one message at a time, and ack each individually."""
        return replace(self, _each=True)

    def auto_ack(self, on: bool) -> Self:
        """Whether `consume` acks when its handler returns (the default); otherwise the handler acks."""
        return replace(self, _auto_ack=on)

    def concurrency(self, workers: int) -> Self:
        """Make `consume` handle this many batches concurrently, of different partitions."""
        return replace(self, _concurrency=at_least_one("concurrency", workers))

    def limit(self, messages: int) -> Self:
        """Make `consume` return after this many messages."""
        return replace(self, _limit=at_least_one("limit", messages))

    def idle(self, duration: Duration) -> Self:
        """Make `consume` return when no message arrived for this long."""
        return replace(self, _idle=seconds("idle", duration))

    def buffered(self) -> Self:
        """Buffer pushes and send them in batches; `queen.flush()` and closing wait for them."""
        return replace(self, _buffered=True)

    async def create(
        self,
        *,
        lease_time: Duration | None = None,
        retry_limit: int | None = None,
        retry_delay: Duration | None = None,
        ttl: Duration | None = None,
        max_size: int | None = None,
        priority: int | None = None,
        delayed_processing: Duration | None = None,
        window_buffer: Duration | None = None,
        retention: Duration | None = None,
        completed_retention: Duration | None = None,
        encryption: bool | None = None,
        dead_letter_queue: bool | str | None = None,
        max_wait_time: Duration | None = None,
    ) -> dict[str, Any]:
        """Create or reconfigure the queue; return all its options. Omitted options get their defaults."""
        if lease_time is not None:
            lease_seconds("lease_time", lease_time)
        options: dict[str, Any] = {
            "retryLimit": retry_limit,
            "maxSize": max_size,
            "priority": priority,
            "encryptionEnabled": encryption,
            "deadLetterQueue": dead_letter_queue,
            "retryDelay": None if retry_delay is None else milliseconds("retry_delay", retry_delay),
        }
        in_seconds = {
            "leaseTime": ("lease_time", lease_time),
            "ttl": ("ttl", ttl),
            "delayedProcessing": ("delayed_processing", delayed_processing),
            "windowBuffer": ("window_buffer", window_buffer),
            "retentionSeconds": ("retention", retention),
            "completedRetentionSeconds": ("completed_retention", completed_retention),
            "maxWaitTimeSeconds": ("max_wait_time", max_wait_time),
        }
        for option, (argument, value) in in_seconds.items():
            options[option] = None if value is None else whole_seconds(argument, value)
        body = {
            "queue": self.name,
            "namespace": self._namespace,
            "task": self._task,
            "options": {option: value for option, value in options.items() if value is not None},
        }
        response: dict[str, Any] = await self._session.call("POST", "configure", body=_given(body))
        options_now: dict[str, Any] = response["options"]
        return options_now

    async def push(
        self,
        payloads: Any,
        *,
        transaction_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> list[Pushed]:
        """Push one payload, or each of a list; returns once stored. Buffered pushes return [].

        Every message gets the headers. Pass an `Outgoing` for a message with its own transaction id,
        partition, trace id or additional headers. A push is retried until a broker responds, and stored once.
        """
        made = items(self.name, self._partition, payloads, transaction_id, headers)
        if self._buffered:
            await self._session.buffer.add(made)
            return []
        return await self._session.push(made)

    async def pop(self, *, wait: Duration = 0, auto_ack: bool = False) -> AsyncBatch:
        """Lease up to `batch` messages; empty if none became available within `wait`.

        With `auto_ack` they are acked on delivery: messages of a lost response are lost, and this raises
        Unreachable.
        """
        return await self._pop(self._batch, seconds("wait", wait), auto_ack=auto_ack)

    async def consume(self, handler: Callable[[Any], object], *, on_event: Listener | None = None) -> None:
        """Call `handler` with each batch, or message after `each()`, until `limit`, `idle` or Ctrl-C.

        A batch is acked when the handler returns, and nacked with the reason when it raises. The lease is
        renewed while the handler runs. SIGINT and SIGTERM stop it after the batches in flight.
        """
        checked(handler)
        crew: AsyncCrew[AsyncBatch] = AsyncCrew(
            self.name,
            self._group,
            take=self._take,
            do=self._each_message(handler) if self._each else self._whole(handler),
            size=len,
            each_take=self._batch,
            # Messages that the handler does not ack are redelivered when the lease expires, so it must cover
            # no others.
            most_ahead=max(1, _MOST_AHEAD // self._batch) if self._auto_ack else 0,
            concurrency=self._concurrency,
            limit=self._limit,
            idle=self._idle,
            listener=on_event,
        )
        await self._session.run(crew)

    async def seek(self, to: Literal["beginning", "end"] | datetime | str) -> None:
        """Seek the group to the beginning, to the end, or to the first message at or after a time."""
        if self._group is None:
            raise InvalidValue("seek requires a group: queue(name).group(name).seek(…)")
        body: dict[str, Any]
        if to in ("beginning", "end"):
            body = {"toBeginning": True} if to == "beginning" else {"toEnd": True}
        else:
            body = {"timestamp": as_time("to", to)}
        scope = [] if self._partition is None else ["partitions", self._partition]
        await self._session.call(
            "POST", "consumer-groups", self._group, "queues", self.name, *scope, "seek", body=body
        )

    async def describe(self) -> dict[str, Any]:
        """Return its options, partitions, groups and counts, as the broker shows them."""
        shown: dict[str, Any] = await self._session.call("GET", "resources", "queues", self.name)
        return shown

    async def delete(self) -> bool:
        """Delete the queue and its messages; return whether it existed."""
        response = await self._session.call("DELETE", "resources", "queues", self.name)
        return bool(response["existed"])

    async def dead_letters(self, *, limit: int = 100, offset: int = 0) -> list[DeadLetter]:
        """List its dead letters (of the group and partition, if set), newest first."""
        query = {**self._dead(), "limit": limit, "offset": offset}
        found: DeadLetters = await self._session.call("GET", "dlq", query=query, kind=DeadLetters)
        return found.messages

    async def retry_dead_letters(self) -> int:
        """Return its dead letters to their groups for redelivery; return their number."""
        response = await self._session.call("POST", "dlq", "retry", query=self._dead())
        return int(response["count"])

    async def delete_dead_letters(self) -> int:
        """Delete its dead letters permanently; return their number."""
        response = await self._session.call("DELETE", "dlq", query=self._dead())
        return int(response["count"])

    def _dead(self) -> dict[str, Any]:
        return {"queue": self.name, "consumerGroup": self._group, "partition": self._partition}

    async def _pop(
        self, most: int, wait: float, *, auto_ack: bool = False, partitions: int = 1
    ) -> AsyncBatch:
        path = ["pop", "queue", self.name]
        if self._partition is not None:
            path += ["partition", self._partition]
        query = {
            "batch": most,
            "partitions": partitions if partitions > 1 else None,
            "consumerGroup": self._group,
            "consumerId": self._session.consumer_id,
            "autoAck": auto_ack or None,
            "wait": wait > 0 or None,
            "timeout": round(wait * 1000) if wait > 0 else None,
            "subscriptionMode": "new" if self._start == "latest" else None,
            "subscriptionFrom": None
            if self._start in ("earliest", "latest")
            else as_time("start", self._start),
        }
        popped: Popped | None = await self._session.call(
            "GET", *path, query=query, patience=wait, kind=Popped, repeatable=not auto_ack
        )
        return batch_of(self._session.transport, popped)

    async def _take(self, wish: Wish) -> list[list[AsyncBatch]]:
        """Fetch batches of several partitions; those of one partition form one run."""
        if not self._auto_ack:
            wish = wish._replace(deliveries=1, units=min(wish.units, self._batch))
        popped = await self._pop(wish.units, wish.wait, partitions=min(wish.deliveries, _MOST_AHEAD))
        return runs_of(popped, self._batch)

    def _whole(self, handler: Callable[[AsyncBatch], object]) -> Any:
        async def do(batch: AsyncBatch, give: Give) -> Verdict:
            _, failure = await attempt(handler, batch)
            if failure is not None:
                return Verdict(_failed(batch, reason_of(failure)), failure)
            return Verdict(batch.acks("completed") if self._auto_ack else ())

        return do

    def _each_message(self, handler: Callable[[AsyncLeasedMessage], object]) -> Any:
        async def do(batch: AsyncBatch, give: Give) -> Verdict:
            for number, message in enumerate(batch):
                _, failure = await attempt(handler, message)
                if failure is not None:
                    # The partition is ordered: later messages are released too.
                    behind = [AsyncAck(each, "retry") for each in batch[number + 1 :] if not each.acked]
                    return Verdict([*behind, *_failed([message], reason_of(failure))], failure)
                if self._auto_ack and not message.acked:
                    await give([AsyncAck(message, "completed")])
            return Verdict()

        return do


def _failed(messages: Iterable[AsyncLeasedMessage], reason: str) -> list[AsyncAck]:
    """Return nacks for unacked messages; an ack that may have arrived is never followed by one."""
    return [
        AsyncAck(message, "failed", reason)
        for message in messages
        if not message.acked and not message.in_doubt
    ]


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
