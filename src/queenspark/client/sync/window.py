# Made from aio/window.py by `make format`: change that file, not this one.
"""A window that a consumer has in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ...formats.window_message import GLOBAL
from ..aggregation import Groups
from ..duration import Duration
from ..errors import InvalidValue, LeaseLost, QueenError, Refused, may_have_happened
from ..messages import Message, Messages, Wanted
from ..wire import SealedWindow, WindowPage
from .answers import Answer, Status, answer
from .leases import Lease
from .transport import Transport

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


T = TypeVar("T")


class Window:
    """The messages of one key between two times, leased to this consumer until it answers."""

    def __init__(self, transport: Transport, sealed: SealedWindow) -> None:
        self._transport = transport
        self._sealed = sealed
        self.lease = Lease(transport, sealed.lease_id, sealed.lease_timeout_ms / 1000)
        #: Its messages, in the order of the log; of a paged window the first page, and none of a window that
        #: was polled with `messages=False`.
        self.messages: Messages[Message] = Messages(sealed.messages or [])
        self.answered = False
        #: An answer was sent, and nobody knows whether it arrived.
        self.in_doubt = False
        #: The last answer that `process` sent, or `release`.
        self.status: Status | None = None

    @property
    def id(self) -> str:
        """The same for every group and after every restart: good as a key for what you store."""
        return self._sealed.id

    @property
    def stream(self) -> str:
        """The stream's name."""
        return self._sealed.stream

    @property
    def namespace(self) -> str:
        """The stream's namespace."""
        return self._sealed.namespace

    @property
    def group(self) -> str:
        """The consumer group that it was delivered to."""
        return self._sealed.consumer_group

    @property
    def key(self) -> str:
        """The partition's name, the value of the stream's key expressions, or `__GLOBAL__`."""
        return self._sealed.key

    @property
    def partition(self) -> str:
        """The partition that its results go to, if nothing else is said: its key, or `Default`."""
        return "Default" if self.key == GLOBAL else self.key

    @property
    def start(self) -> datetime:
        """Its first moment."""
        return self._sealed.start

    @property
    def end(self) -> datetime:
        """The first moment that is not in it."""
        return self._sealed.end

    @property
    def count(self) -> int:
        """How many messages it has."""
        return self._sealed.count

    @property
    def aggregates(self) -> dict[str, Any]:
        """What the stream computes of it, by name; empty when it computes nothing."""
        return self._sealed.aggregates

    @property
    def revision(self) -> int:
        """1, and more when late messages came after it was sealed."""
        return self._sealed.revision

    @property
    def version(self) -> int:
        """The version of the stream's definition."""
        return self._sealed.version

    @property
    def retries(self) -> int:
        """How often it failed before."""
        return self._sealed.retry_count

    @property
    def replaces(self) -> list[str]:
        """The ids of sessions that late messages merged into this one."""
        return self._sealed.replaces

    @property
    def all_messages(self) -> Messages[Message]:
        """All its messages. Of a window polled with `max_messages` or `messages=False`, use `pages`."""
        if self._sealed.messages is None:
            raise InvalidValue(f"window {self.id} was polled with messages=False: go through pages()")
        if self._sealed.next_cursor is not None:
            raise InvalidValue(f"window {self.id} was polled with max_messages: go through pages()")
        return self.messages

    def pages(self) -> Iterator[Messages[Message]]:
        """Its messages, a page of `max_messages` at a time; also of a window polled with `messages=False`."""
        if self._sealed.messages is None:
            page = self._page(None, None)
        else:
            page = WindowPage(self._sealed.messages, self._sealed.next_cursor)
        size = max(1, len(page.messages))
        yield Messages(page.messages)
        while page.next_cursor is not None:
            page = self._page(page.next_cursor, size)
            yield Messages(page.messages)

    def _page(self, cursor: str | None, size: int | None) -> WindowPage:
        page: WindowPage = self._transport.call(
            "GET",
            "stream",
            "window",
            self.lease.id,
            "messages",
            query={"cursor": cursor, "maxMessages": size},
            kind=WindowPage,
        )
        return page

    def ack(self, success: bool = True) -> None:
        """It is done and does not come again to this group. Repeating it changes nothing.

        `ack(False)` is `nack()`.
        """
        self._answer(success=success)

    def nack(self, reason: str = "") -> None:
        """It failed: it comes again after a delay, and after the retry limit it is a dead letter."""
        self._answer(success=False, reason=reason)

    def release(self) -> None:
        """It comes again at once, to anybody; this counts as no failure."""
        answer(self.answers("retry"))

    def renew(self, duration: Duration | None = None) -> None:
        """Lengthen the lease, by default to its whole time from now. `process` does so by itself."""
        self.lease.renew(duration)

    def answers(self, status: Status, reason: str | None = None) -> list[Answer]:
        """This answer to it, unless it was answered before."""
        return [] if self.answered else [Answer(self, status, reason)]

    @property
    def comes_again(self) -> bool:
        """Whether it was given back."""
        return self.status in ("failed", "retry")

    def as_ack(self, status: Status = "completed", reason: str | None = None) -> dict[str, Any]:
        """The answer to it, as a transaction and the broker want it."""
        return {
            "transactionId": self._sealed.transaction_id,
            "partitionId": self._sealed.partition_id,
            "leaseId": self.lease.id,
            "consumerGroup": self.group,
            "status": status,
            "error": reason,
        }

    def filter(self, keep: Callable[[Message], object]) -> Messages[Message]:
        """The messages for which `keep` is true."""
        return self.all_messages.filter(keep)

    def map(self, make: Callable[[Message], T]) -> list[T]:
        """What `make` returns for each message."""
        return self.all_messages.map(make)

    def values(self, path: str) -> list[Any]:
        """The values at a path such as `data.user`, of the messages that have one."""
        return self.all_messages.values(path)

    def group_by(self, path: str) -> Groups[Messages[Message]]:
        """The messages by the value at a path; those without one are in the group None."""
        return self.all_messages.group_by(path)

    def aggregate(self, **wanted: Unpack[Wanted]) -> dict[str, Any]:
        """Count, sum, avg, min, max, p50, p95, p99 and distinct: as `Messages.aggregate`."""
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

    def _answer(self, *, success: bool, reason: str | None = None) -> None:
        body = {"leaseId": self.lease.id, "windowId": self.id, "success": success, "error": reason}
        try:
            self._transport.call("POST", "stream", "ack", body=body)
        except QueenError as error:
            self.in_doubt = self.in_doubt or may_have_happened(error)
            if not isinstance(error, Refused) or error.status != 400:
                raise
            self.answered = True
            raise LeaseLost(f"the answer to window {self.id} was refused: {error}") from None
        self.answered = True
