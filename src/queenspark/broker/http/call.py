"""One request, as a handler sees it."""

from __future__ import annotations

from asyncio import Task, create_task, sleep
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import msgspec

from .asgi import Receive, Scope

_A_WHILE = 0.05  # seconds
_ROUNDS = 5  # of the event loop, until the end of a connection has come through to whoever waits for it


class Caller(msgspec.Struct, frozen=True):
    """Who sent a request, and the roles that they have."""

    name: str
    roles: frozenset[str] = frozenset()


ANONYMOUS = Caller("anonymous")


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
        "_began", "_gone", "body", "body_bytes", "caller", "header_pairs", "method", "path", "query",
        "read_to_end", "receive", "url_path",
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
        #: Whether all of the request was received.
        self.read_to_end = False
        self._gone: Task[None] | None = None
        self._began = monotonic()

    @property
    def headers(self) -> Headers:
        """The headers of the request."""
        return Headers(self.header_pairs)

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
        gone = self.watch()
        if monotonic() - self._began > _A_WHILE:
            for _ in range(_ROUNDS):
                await sleep(0)
        return gone.done()

    async def _until_gone(self) -> None:
        while (message := await self.receive())["type"] != "http.disconnect":
            self.read_to_end = not message.get("more_body", False)

    def close(self) -> None:
        """Stop watching."""
        if self._gone is not None:
            self._gone.cancel()
