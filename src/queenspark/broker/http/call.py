"""One request, as a handler sees it."""

from __future__ import annotations

from asyncio import Task, create_task, sleep
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

from ..errors import ApiError, not_found
from .asgi import Receive, Scope
from .caller import ANONYMOUS
from .right import Right

_A_WHILE = 0.05  # seconds
_ROUNDS = 5  # of the event loop, until the end of a connection has come through to whoever waits for it


def _always() -> bool:
    return True


class Headers(Mapping[str, str]):
    """The headers of a request by name, in any case.

    A view of the server's own list: it costs nothing until a header is looked up.
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
    """One request, read as its route says."""

    __slots__ = (
        "_began", "_gone", "acted_on", "address", "body", "body_bytes", "caller", "header_pairs", "is_known",
        "method", "path", "query", "read_to_end", "receive", "right", "url_path",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.url_path: str = scope["path"]
        #: Names in lower case, as the server has them.
        self.header_pairs: Sequence[tuple[bytes, bytes]] = scope["headers"]
        self.receive = receive
        self.path: dict[str, str] = {}
        self.query: Any = None
        self.body: Any = None
        self.body_bytes = 0
        self.caller = ANONYMOUS
        #: Whether the credential of the caller is still good: what takes a while asks before it gives.
        self.is_known: Callable[[], bool] = _always
        #: The right that its route needs.
        self.right = Right.PUBLIC
        #: Where the client is.
        self.address: str = (scope.get("client") or ("unknown",))[0]
        #: What an administrative act was about, for the audit log, where the path does not say it.
        self.acted_on: str | None = None
        #: Whether all of the request was received.
        self.read_to_end = False
        self._gone: Task[None] | None = None
        self._began = monotonic()

    @property
    def headers(self) -> Headers:
        """The headers of the request."""
        return Headers(self.header_pairs)

    def may(self, name: str, right: Right | None = None) -> bool:
        """Whether the caller has the right of the route, or another one, to what has this name."""
        return self.caller.may(right or self.right, name)

    def visible(self, right: Right | None = None) -> list[str] | None:
        """The names of a list that the caller may see, as patterns of LIKE; None for every name."""
        return self.caller.visible(right or self.right)

    def check_known(self) -> None:
        """401 when the credential of the caller has been revoked or has expired since the request began."""
        if not self.is_known():
            raise ApiError(401, "the API key or token is no longer valid: it was revoked, or has expired")

    def need(self, right: Right) -> None:
        """Refuse a caller who has no such right to anything."""
        if not self.caller.can(right):
            raise forbidden(self.caller.name, right)

    def need_queue(self, name: str, right: Right | None = None) -> None:
        """Refuse a caller without a right to a queue: 403, or 404 when they have it to other queues."""
        self.need(right or self.right)
        if not self.may(name, right):
            raise not_found(f"queue {name} does not exist")

    def watch(self) -> Task[None]:
        """A task that ends when the client goes away."""
        if self._gone is None:
            self._gone = create_task(self._until_gone())
        return self._gone

    async def has_left(self) -> bool:
        """Whether the client is gone, after a look at news of it that come in at this very moment.

        Only a request that took a while is worth the look: the answer and the end of the connection may have
        reached this process together, and then either may come first.
        """
        if monotonic() - self._began > _A_WHILE:
            return not await self.is_waiting()
        return self.watch().done()

    async def is_waiting(self) -> bool:
        """Whether the client is still there, after a look at news of it, however short the request."""
        gone = self.watch()
        for _ in range(_ROUNDS):
            await sleep(0)
        return not gone.done()

    async def _until_gone(self) -> None:
        while (message := await self.receive())["type"] != "http.disconnect":
            self.read_to_end = not message.get("more_body", False)

    def close(self) -> None:
        """Stop watching."""
        if self._gone is not None:
            self._gone.cancel()


def forbidden(name: str, right: Right) -> ApiError:
    """403: the caller's role or scopes lack a right."""
    return ApiError(403, f"{name} lacks the right {right}: ask an administrator for a role or scope with it")
