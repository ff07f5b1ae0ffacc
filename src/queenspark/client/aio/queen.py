"""The client's front door."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from ..brokers import Brokers
from ..credentials import File, Token, credentials
from ..duration import Duration, milliseconds, seconds
from ..events import Listener
from .admin import AsyncAdmin
from .consumer import AsyncConsumer
from .queue import AsyncQueue
from .session import AsyncSession
from .sql import AsyncSqlAnswer, run
from .stream import AsyncStream
from .transaction import AsyncTransaction
from .transport import AsyncTransport

_URL = "http://127.0.0.1:6632"


class AsyncQueen:
    """A client of Queenspark: queues, streams, consumers, transactions and SQL.

    `url` is a broker, or several brokers of one database: when one does not answer, the next is asked.
    Without it, `QUEENSPARK_URL` is, or the broker of `queenspark up` on this machine. `timeout` bounds the
    wait for an answer. What is safe to repeat is repeated `retries` times. `buffer_size`, `linger` and
    `buffer_wait` are for buffered pushes: how many may wait, how long they are gathered, and how long a push
    waits for room.

    `api_key`, or `token` (or a function that gives one), says who the client is; without them,
    `QUEENSPARK_API_KEY` and `QUEENSPARK_TOKEN` do. `ca` is a file with the certificates that a broker with
    TLS is checked against, and `certificate` the files of the client's own certificate and its key.
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        timeout: Duration = 30,
        retries: int = 5,
        buffer_size: int = 10_000,
        linger: Duration = "20ms",
        buffer_wait: Duration = 30,
        api_key: str | None = None,
        token: Token | None = None,
        ca: File | None = None,
        certificate: tuple[File, File] | None = None,
    ) -> None:
        default = os.environ.get("QUEENSPARK_URL", "").strip() or _URL
        brokers = Brokers(default if url is None else url)
        transport = AsyncTransport(
            brokers,
            timeout=seconds("timeout", timeout),
            retries=retries,
            credentials=credentials(api_key, token, ca, certificate),
        )
        self._session = AsyncSession(
            transport,
            buffer_size=buffer_size,
            linger=seconds("linger", linger),
            patience=seconds("buffer_wait", buffer_wait),
        )

    def queue(self, name: str) -> AsyncQueue:
        """A queue, to push to it, pop from it and consume it."""
        return AsyncQueue(_session=self._session, name=name)

    def stream(self, name: str, namespace: str = "default") -> AsyncStream:
        """A stream, to define it and to look after it."""
        return AsyncStream(_session=self._session, name=name, namespace=namespace)

    def consumer(
        self, stream: str, group: str, *, namespace: str | None = None, on_event: Listener | None = None
    ) -> AsyncConsumer:
        """A consumer of a stream's windows. The namespace is needed when two have a stream of that name."""
        return AsyncConsumer(self._session, stream, group, namespace, on_event)

    def transaction(self) -> AsyncTransaction:
        """Acks and pushes that happen together or not at all."""
        return AsyncTransaction(self._session.transport)

    async def sql(
        self,
        statements: str,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 - the broker ends the SELECT
        dry_run: bool = False,
    ) -> AsyncSqlAnswer:
        """Run SQL statements, all of them or none; a single SELECT gives its rows as they come.

        A SELECT ends at its LIMIT, after `timeout`, or when the loop over its rows is left. With `dry_run`
        statements are checked, and nothing is changed.
        """
        limit = None if timeout is None else milliseconds("timeout", timeout)
        return await run(self._session, statements, limit, dry_run)

    @property
    def admin(self) -> AsyncAdmin:
        """Looking at a whole system, and looking after it."""
        return AsyncAdmin(self._session)

    async def flush(self) -> None:
        """Wait until all buffered pushes are stored; NotSent when some could not be."""
        await self._session.buffer.flush()

    def stop(self) -> None:
        """End all consumers of this client after what they have in hand."""
        self._session.stop()

    async def aclose(self) -> None:
        """End the consumers, send what is buffered, close the connections."""
        await self._session.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
