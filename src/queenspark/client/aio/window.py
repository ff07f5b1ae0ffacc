"""A window leased by a consumer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ...formats.window_message import GLOBAL
from ..aggregation import Groups
from ..duration import Duration
from ..errors import InvalidValue, LeaseLost, QueenError, Refused, may_have_happened
from ..messages import Message, Messages, Wanted
from ..wire import SealedWindow, WindowPage
from .acks import AsyncAck, Status, send_acks
from .leases import AsyncLease
from .transport import AsyncTransport

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


T = TypeVar("T")


class AsyncWindow:
    """The messages of one key between two times, leased to this consumer until it acks."""

    def __init__(self, transport: AsyncTransport, sealed: SealedWindow) -> None:
        self._transport = transport
        self._sealed = sealed
        self.lease = AsyncLease(transport, sealed.lease_id, sealed.lease_timeout_ms / 1000)
        #: Its messages, in log order; the first page of a paged window, none if polled with `messages=False`.
        self.messages: Messages[Message] = Messages(sealed.messages or [])
        self.acked = False
        #: An ack or nack was sent and may or may not have arrived.
        self.in_doubt = False
        #: The last status sent by `process` or `release`.
        self.status: Status | None = None

    @property
    def id(self) -> str:
        """The window's id, the same for every group and after every restart: usable as an idempotency key."""
        return self._sealed.id

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._sealed.stream

    @property
    def namespace(self) -> str:
        """The namespace of the stream."""
        return self._sealed.namespace

    @property
    def group(self) -> str:
        """The consumer group of this delivery."""
        return self._sealed.consumer_group

    @property
    def key(self) -> str:
        """The partition's name, the value of the stream's key expressions, or `__GLOBAL__`."""
        return self._sealed.key

    @property
    def partition(self) -> str:
        """The default partition of its results: its key, or `Default` for a global stream."""
        return "Default" if self.key == GLOBAL else self.key

    @property
    def start(self) -> datetime:
        """Start of the window, inclusive."""
        return self._sealed.start

    @property
    def end(self) -> datetime:
        """End of the window, exclusive."""
        return self._sealed.end

    @property
    def count(self) -> int:
        """The number of messages."""
        return self._sealed.count

    @property
    def aggregates(self) -> dict[str, Any]:
        """The stream's aggregates by name; empty if it has none."""
        return self._sealed.aggregates

    @property
    def revision(self) -> int:
        """1, incremented each time late messages changed the window after it was sealed."""
        return self._sealed.revision

    @property
    def version(self) -> int:
        """The version of the stream's definition."""
        return self._sealed.version

    @property
    def retries(self) -> int:
        """Number of earlier failures."""
        return self._sealed.retry_count

    @property
    def replaces(self) -> list[str]:
        """The ids of sessions that late messages merged into this one."""
        return self._sealed.replaces

    @property
    def all_messages(self) -> Messages[Message]:
        """All its messages. For a window polled with `max_messages` or `messages=False`, use `pages`."""
        if self._sealed.messages is None:
            raise InvalidValue(f"window {self.id} was polled with messages=False: iterate over pages()")
        if self._sealed.next_cursor is not None:
            raise InvalidValue(f"window {self.id} was polled with max_messages: iterate over pages()")
        return self.messages

    async def pages(self) -> AsyncIterator[Messages[Message]]:
        """Iterate over its messages in pages of `max_messages`, also if polled with `messages=False`."""
        if self._sealed.messages is None:
            page = await self._page(None, None)
        else:
            page = WindowPage(self._sealed.messages, self._sealed.next_cursor)
        size = max(1, len(page.messages))
        yield Messages(page.messages)
        while page.next_cursor is not None:
            page = await self._page(page.next_cursor, size)
            yield Messages(page.messages)

    async def _page(self, cursor: str | None, size: int | None) -> WindowPage:
        page: WindowPage = await self._transport.call(
            "GET",
            "stream",
            "window",
            self.lease.id,
            "messages",
            query={"cursor": cursor, "maxMessages": size},
            kind=WindowPage,
        )
        return page

    async def ack(self, success: bool = True) -> None:
        """Mark it as done: this group will not get it again. Idempotent.

        `ack(False)` is `nack()`.
        """
        await self._send_ack(success=success)

    async def nack(self, reason: str = "") -> None:
        """Mark it as failed: it is redelivered after a delay, and dead-lettered after the retry limit."""
        await self._send_ack(success=False, reason=reason)

    async def release(self) -> None:
        """Release it for immediate redelivery to any consumer; not counted as a failure."""
        await send_acks(self.acks("retry"))

    async def renew(self, duration: Duration | None = None) -> None:
        """Extend the lease, by default to its full time from now. `process` does this automatically."""
        await self.lease.renew(duration)

    def acks(self, status: Status, reason: str | None = None) -> list[AsyncAck]:
        """Return an ack with this status, unless already acked."""
        return [] if self.acked else [AsyncAck(self, status, reason)]

    @property
    def redelivered(self) -> bool:
        """Whether it was released or nacked."""
        return self.status in ("failed", "retry")

    def as_ack(self, status: Status = "completed", reason: str | None = None) -> dict[str, Any]:
        """Return the ack in its wire format, for the ack and transaction routes."""
        return {
            "transactionId": self._sealed.transaction_id,
            "partitionId": self._sealed.partition_id,
            "leaseId": self.lease.id,
            "consumerGroup": self.group,
            "status": status,
            "error": reason,
        }

    def filter(self, keep: Callable[[Message], object]) -> Messages[Message]:
        """Return the messages for which `keep` is true."""
        return self.all_messages.filter(keep)

    def map(self, make: Callable[[Message], T]) -> list[T]:
        """Return the result of `make` for each message."""
        return self.all_messages.map(make)

    def values(self, path: str) -> list[Any]:
        """Return the values at a path, for instance `data.user`; messages without a value are skipped."""
        return self.all_messages.values(path)

    def group_by(self, path: str) -> Groups[Messages[Message]]:
        """Group the messages by the value at a path; those without one are in the group None."""
        return self.all_messages.group_by(path)

    def aggregate(self, **wanted: Unpack[Wanted]) -> dict[str, Any]:
        """Compute count, sum, avg, min, max, p50, p95, p99 and distinct, as `Messages.aggregate` does."""
        return self.all_messages.aggregate(**wanted)

    def to_arrow(self) -> pyarrow.Table:
        """The messages as an Arrow table."""
        return self.all_messages.to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """The messages as a pandas frame."""
        return self.all_messages.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The messages as a polars frame."""
        return self.all_messages.to_polars()

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        span = f"{self.start.isoformat()} to {self.end.isoformat()}"
        return f"<window of {self.stream}, {self.key}: {span}, {self.count} messages>"

    async def _send_ack(self, *, success: bool, reason: str | None = None) -> None:
        body = {"leaseId": self.lease.id, "windowId": self.id, "success": success, "error": reason}
        try:
            await self._transport.call("POST", "stream", "ack", body=body)
        except QueenError as error:
            self.in_doubt = self.in_doubt or may_have_happened(error)
            if not isinstance(error, Refused) or error.status != 400:
                raise
            self.acked = True
            raise LeaseLost(f"the ack of window {self.id} was rejected: {error}") from None
        self.acked = True
