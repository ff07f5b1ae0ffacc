"""A bare connection to a broker, for clients that go away when it suits the test."""

import json
import socket
from types import TracebackType
from typing import Self


class RawConnection:
    """One TCP connection that sends a request and may be closed before the response arrives."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, path: str) -> None:
        """Send a GET without waiting for its response."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def post(self, path: str, body: object) -> None:
        """Send a POST without waiting for its response."""
        text = json.dumps(body)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n"
        self._socket.sendall((head + text).encode())

    def send(self, text: bytes) -> None:
        """Send bytes unchanged, in one piece."""
        self._socket.sendall(text)

    def status(self) -> int:
        """Wait for a response and read its status."""
        received = b""
        while b"\r\n" not in received:
            received += self._socket.recv(4096)
        return int(received.split(b" ", 2)[1])

    def response(self) -> tuple[int, dict[str, str], bytes]:
        """Wait for a response and read all of it: status, headers with names in lower case, body."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._some()
        head, _, body = received.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += self._some()
        return int(first.split(" ")[1]), headers, body

    def _some(self) -> bytes:
        part = self._socket.recv(65536)
        assert part, "the connection ended early"
        return part

    def ended(self) -> bool:
        """Wait until the broker ends the connection; False when it sends something instead."""
        try:
            return not self._socket.recv(1)
        except ConnectionResetError:
            return True

    def responded(self) -> bool:
        """Whether a first byte of a response has arrived."""
        self._socket.setblocking(False)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self._socket.setblocking(True)

    def close(self) -> None:
        """Go away."""
        self._socket.close()
