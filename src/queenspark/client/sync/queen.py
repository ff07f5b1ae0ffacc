# Made from aio/queen.py by `make format`: change that file, not this one.
"""The client's entry point."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from ..brokers import Brokers
from ..credentials import File, Headers, Token, credentials
from ..duration import Duration, milliseconds, seconds
from ..events import Listener
from .admin import Admin
from .consumer import Consumer
from .queue import Queue
from .session import Session
from .sql import SqlResults, run
from .stream import Stream
from .transaction import Transaction
from .transport import Transport

_URL = "http://127.0.0.1:6632"


class Queen:
    """A client of Queenspark: queues, streams, consumers, transactions and SQL.

    `url` is one broker, or several brokers of one database to fail over between. The default is
    `QUEENSPARK_URL`, else the broker of `queenspark up` on this machine. `timeout` bounds the wait for a
    response. Requests that are safe to repeat are retried `retries` times. `buffer_size`, `linger` and
    `buffer_wait` apply to buffered pushes: the buffer's capacity, the time items are held to be batched, and
    the time a push waits for room.

    `api_key`, or `token` (a string or a function that returns one), identifies the client; the defaults are
    `QUEENSPARK_API_KEY` and `QUEENSPARK_TOKEN`. `ca` is a file with the CA certificates to verify a TLS
    broker against, and `certificate` the files of the client certificate and its key. `headers`, or a
    function that returns them, are sent with every request, for instance for a proxy.
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
        headers: Headers | None = None,
    ) -> None:
        default = os.environ.get("QUEENSPARK_URL", "").strip() or _URL
        brokers = Brokers(default if url is None else url)
        transport = Transport(
            brokers,
            timeout=seconds("timeout", timeout),
            retries=retries,
            credentials=credentials(api_key, token, ca, certificate),
            headers=headers,
        )
        self._session = Session(
            transport,
            buffer_size=buffer_size,
            linger=seconds("linger", linger),
            patience=seconds("buffer_wait", buffer_wait),
        )

    def queue(self, name: str) -> Queue:
        """Return a queue, to push, pop and consume."""
        return Queue(_session=self._session, name=name)

    def stream(self, name: str, namespace: str = "default") -> Stream:
        """Return a stream, to define and manage it."""
        return Stream(_session=self._session, name=name, namespace=namespace)

    def consumer(
        self, stream: str, group: str, *, namespace: str | None = None, on_event: Listener | None = None
    ) -> Consumer:
        """Return a consumer of a stream's windows. A namespace is required if the name is ambiguous."""
        return Consumer(self._session, stream, group, namespace, on_event)

    def transaction(self) -> Transaction:
        """Start a transaction: acks and pushes that are committed atomically."""
        return Transaction(self._session.transport)

    def sql(
        self,
        statements: str,
        *,
        timeout: Duration | None = None,
        dry_run: bool = False,
    ) -> SqlResults:
        """Run SQL statements atomically; a single SELECT streams its rows.

        A SELECT ends at its LIMIT, after `timeout`, or when the iteration over its rows ends. With `dry_run`
        statements are only validated.
        """
        limit = None if timeout is None else milliseconds("timeout", timeout)
        return run(self._session, statements, limit, dry_run)

    @property
    def admin(self) -> Admin:
        """Monitoring and administration of the whole system."""
        return Admin(self._session)

    def flush(self) -> None:
        """Wait until all buffered pushes are stored; raise NotSent if some could not be."""
        self._session.buffer.flush()

    def stop(self) -> None:
        """Stop all consumers of this client after their deliveries in flight."""
        self._session.stop()

    def close(self) -> None:
        """Stop the consumers, flush buffered pushes, close the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
