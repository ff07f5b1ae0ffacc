"""TCP proxies between the processes of a system, which can be cut, delayed, stalled and half-closed."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from tests.broker_process import free_port

CHUNK = 65536
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Open = Callable[[], Awaitable[Pair]]


def to_port(port: int) -> Open:
    """Connect to a local port."""
    return lambda: asyncio.open_connection("127.0.0.1", port)


def to_socket(path: Path) -> Open:
    """Connect to a Unix socket."""
    return lambda: asyncio.open_unix_connection(str(path))


class Network:
    """An event loop in its own thread, which serves all links."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def link(self, name: str, open_target: Open) -> "Link":
        """Listen on a new port and forward everything to the target."""
        return asyncio.run_coroutine_threadsafe(_listening(name, open_target), self._loop).result()

    def do(self, action: Callable[[], None]) -> None:
        """Run an action on the event loop."""

        async def act() -> None:
            action()

        asyncio.run_coroutine_threadsafe(act(), self._loop).result()


class Link:
    """All connections from one process to another."""

    def __init__(self, name: str, open_target: Open) -> None:
        self.name = name
        self.port = free_port()
        #: Delay of each chunk of data, in seconds.
        self.delay = 0.0
        #: Whether new connections are closed immediately.
        self.is_refusing = False
        #: The number of connections, or chunks of data, that a fault has affected.
        self.affected = 0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open_target = open_target
        self._connections: set[Connection] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends."""
        if self.is_refusing:
            self.affected += 1
            writer.transport.abort()
            return
        try:
            target = await self._open_target()
        except OSError:
            writer.transport.abort()
            return
        connection = Connection((reader, writer), target)
        self._connections.add(connection)
        try:
            await asyncio.gather(
                self._pass_on(connection, connection.client, connection.server),
                self._pass_on(connection, connection.server, connection.client),
            )
        finally:
            self._connections.discard(connection)
            connection.cut()

    async def _pass_on(self, connection: "Connection", source: Pair, sink: Pair) -> None:
        reader, writer = source[0], sink[1]
        try:
            while data := await reader.read(CHUNK):
                self.affected += bool(self.delay) or not self._flowing.is_set()
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self._flowing.wait()
                if writer not in connection.closed:
                    writer.write(data)
                    await writer.drain()
            if writer not in connection.closed and writer.can_write_eof():
                writer.write_eof()
        except OSError:
            connection.cut()

    def cut(self) -> None:
        """Break all connections."""
        for connection in list(self._connections):
            self.affected += 1
            connection.cut()

    def half_close(self, *, towards_server: bool) -> None:
        """Send EOF to one side without telling the other."""
        for connection in list(self._connections):
            self.affected += 1
            connection.half_close(connection.server if towards_server else connection.client)

    def stall(self) -> None:
        """Stop forwarding data, without an error."""
        self._flowing.clear()

    def heal(self) -> None:
        """Resume forwarding, without delay."""
        self.delay = 0.0
        self.is_refusing = False
        self._flowing.set()


class Connection:
    """One connection between a client and a server."""

    def __init__(self, client: Pair, server: Pair) -> None:
        self.client = client
        self.server = server
        self.closed: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Break it at both ends."""
        for _, writer in (self.client, self.server):
            self.closed.add(writer)
            writer.transport.abort()

    def half_close(self, side: Pair) -> None:
        """Send EOF to this side."""
        _, writer = side
        if writer not in self.closed:
            self.closed.add(writer)
            with suppress(OSError, RuntimeError):
                writer.write_eof()


async def _listening(name: str, open_target: Open) -> Link:
    link = Link(name, open_target)
    await asyncio.start_server(link.accept, "127.0.0.1", link.port)
    return link
