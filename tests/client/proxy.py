"""A TCP proxy in front of a broker that breaks connections, delays and truncates responses on demand."""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.broker_process import free_port


@dataclass(frozen=True)
class Fault:
    """A fault of one request; without any it is passed on."""

    #: The connection ends before the broker gets the request.
    cut_before: bool = False
    #: The broker carries it out, and the connection ends without a response.
    cut_after: bool = False
    #: Number of response bytes that arrive before the connection ends.
    truncate: int | None = None
    #: Delay of the request in seconds.
    hold: float = 0.0
    #: Delay of the response in seconds.
    delay: float = 0.0
    #: The status of a response sent by the proxy instead of the broker.
    status: int | None = None


CUT_BEFORE = Fault(cut_before=True)
CUT_AFTER = Fault(cut_after=True)
Choose = Callable[[str], Fault | None]


class Proxy:
    """Listens on its own port; `fail` and `choose` determine the faults."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        #: Method and path of every received request.
        self.requests: list[str] = []
        #: Decides about requests that no `fail` is about.
        self.choose: Choose = lambda _: None
        self._faults: list[tuple[str, Fault]] = []
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listener: socket.socket | None = None
        self.back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self.away()

    def fail(self, path: str, *faults: Fault) -> None:
        """These happen to the next requests whose method and path contain this, one each."""
        with self._lock:
            self._faults += [(path, fault) for fault in faults]

    @property
    def faults_left(self) -> int:
        """Number of faults that have not happened yet."""
        return len(self._faults)

    def count(self, path: str) -> int:
        """Number of requests whose method and path contain this."""
        return sum(path in request for request in list(self.requests))

    def away(self) -> None:
        """Break all connections and refuse new ones."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def back(self) -> None:
        """Listen, again on the same port."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(100)
        self._listener = listener
        threading.Thread(target=self._accept, args=[listener], daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket() as broker, suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            broker.connect(("127.0.0.1", self._target))
            with self._lock:
                self._sockets |= {client, broker}
            try:
                while (request := _message(client)) and self._pass_on(request, client, broker):
                    pass
            finally:
                with self._lock:
                    self._sockets -= {client, broker}

    def _pass_on(self, request: bytes, client: socket.socket, broker: socket.socket) -> bool:
        """Forward a request; return whether the connection stays open."""
        line = request.partition(b" HTTP/")[0].decode()
        self.requests.append(line)
        fault = self._fault(line)
        self._wait(fault.hold)
        if fault.cut_before:
            return False
        if fault.status is not None:
            body = b'{"error": "told to", "code": "told"}'
            head = f"HTTP/1.1 {fault.status} x\r\nRetry-After: 0\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            return True
        broker.sendall(request)
        ready, _, _ = select.select([client, broker], [], [])
        if broker not in ready:
            return False  # the client has left, so the broker shall see it leave
        response = _message(broker)
        self._wait(fault.delay)
        if fault.cut_after or not response:
            return False
        client.sendall(response[: fault.truncate])
        return fault.truncate is None

    def _fault(self, line: str) -> Fault:
        with self._lock:
            for number, (path, fault) in enumerate(self._faults):
                if path in line:
                    del self._faults[number]
                    return fault
        return self.choose(line) or Fault()

    def _wait(self, seconds: float) -> None:
        if seconds:
            self._closed.wait(seconds)


def _message(source: socket.socket) -> bytes:
    """A whole request or response; empty at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := source.recv(65536)):
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        if not (more := source.recv(65536)):
            return b""
        body += more
    return head + b"\r\n\r\n" + body
