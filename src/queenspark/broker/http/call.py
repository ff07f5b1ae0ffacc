"""One request, as seen by a handler."""

from __future__ import annotations

from asyncio import Task, create_task, sleep
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from time import monotonic
from typing import Any

from ..errors import ApiError, not_found
from .asgi import Receive, Scope
from .caller import ANONYMOUS
from .forbidden import Forbidden
from .right import Right

_A_WHILE = 0.05  # seconds
_ROUNDS = 5  # of the event loop, for a disconnect to reach its waiters
_MOST_HOPS = 3  # addresses of X-Forwarded-For, those added last


def _always() -> bool:
    return True


class Headers(Mapping[str, str]):
    """The request headers by case-insensitive name.

    A view of the server's own list: free until a header is read.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs

    def __getitem__(self, name: str) -> str:
        wanted = name.lower().encode("latin-1", "replace")
        values = [value for each, value in self._pairs if each == wanted]
        if not values:
            raise KeyError(name)
        return b", ".join(values).decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.decode("latin-1") for name, _ in self._pairs))

    def __len__(self) -> int:
        return len({name for name, _ in self._pairs})


class Call:
    """One request, decoded as declared by its route."""

    __slots__ = (
        "_began", "_gone", "acted_on", "address", "body", "body_bytes", "caller", "header_pairs", "is_known",
        "method", "path", "query", "read_to_end", "receive", "right", "url_path",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.url_path: str = scope["path"]
        #: Names in lower case, as provided by the server.
        self.header_pairs: Sequence[tuple[bytes, bytes]] = scope["headers"]
        self.receive = receive
        self.path: dict[str, str] = {}
        self.query: Any = None
        self.body: Any = None
        self.body_bytes = 0
        self.caller = ANONYMOUS
        #: Whether the caller's credential is still valid: slow requests check again before they respond.
        self.is_known: Callable[[], bool] = _always
        #: The right required by the route.
        self.right = Right.PUBLIC
        #: The client's address.
        self.address: str = (scope.get("client") or ("unknown",))[0]
        #: The target of an administrative act, for the audit log, if the path does not name it.
        self.acted_on: str | None = None
        #: Whether the whole request was received.
        self.read_to_end = False
        self._gone: Task[None] | None = None
        self._began = monotonic()

    @property
    def headers(self) -> Headers:
        """The request headers."""
        return Headers(self.header_pairs)

    @property
    def origin(self) -> str:
        """Where the request comes from: its address, and the one that it claims to be forwarded from.

        Only the first is verified: anybody can send the header, so nothing but the audit log uses it.
        """
        claimed = self.headers.get("x-forwarded-for", "").replace(" ", "").split(",")[-_MOST_HOPS:]
        try:
            hops = [str(ip_address(hop.replace("%", "/"))) for hop in claimed]  # a zone may be any text
        except ValueError:
            return self.address
        return self.address if {*hops} == {self.address} else f"{self.address} for {', '.join(hops)}"

    def may(self, name: str, right: Right | None = None) -> bool:
        """Whether the caller has the route's right, or another one, on this name."""
        return self.caller.may(right or self.right, name)

    def visible(self, right: Right | None = None) -> list[str] | None:
        """The names that the caller may list, as LIKE patterns; None for all."""
        return self.caller.visible(right or self.right)

    def check_known(self) -> None:
        """Raise 401 if the caller's credential was revoked or expired since the request began."""
        if not self.is_known():
            raise ApiError(401, "the API key or token is no longer valid: it was revoked, or has expired")

    def need(self, right: Right) -> None:
        """Reject a caller without this right on any name."""
        if not self.caller.can(right):
            raise Forbidden(self.caller, right)

    def need_queue(self, name: str, right: Right | None = None) -> None:
        """Reject a caller without a right on a queue: 403, or 404 if they have it on other queues."""
        self.need(right or self.right)
        if not self.may(name, right):
            raise not_found(f"queue {name} does not exist")

    def check_limit(self) -> None:
        """Raise 429 if the caller has pushed or received too many messages."""
        if self.caller.meter is not None:
            self.caller.meter.messages(0)

    def count_delivered(self, messages: int) -> None:
        """Count messages of the response towards the caller's limit."""
        if self.caller.meter is not None:
            self.caller.meter.delivered(messages)

    def watch(self) -> Task[None]:
        """Return a task that ends when the client disconnects."""
        if self._gone is None:
            self._gone = create_task(self._until_gone())
        return self._gone

    async def has_left(self) -> bool:
        """Whether the client has disconnected, including a disconnect that is arriving right now.

        Checked only for slow requests: the result and the disconnect may reach this process together, in
        either order.
        """
        if monotonic() - self._began > _A_WHILE:
            return not await self.is_waiting()
        return self.watch().done()

    async def is_waiting(self) -> bool:
        """Whether the client is still connected, checked even for short requests."""
        gone = self.watch()
        for _ in range(_ROUNDS):
            await sleep(0)
        return not gone.done()

    async def _until_gone(self) -> None:
        while (message := await self.receive())["type"] != "http.disconnect":
            self.read_to_end = not message.get("more_body", False)

    def close(self) -> None:
        """Stop watching for a disconnect."""
        if self._gone is not None:
            self._gone.cancel()
