"""Additional headers of the client's requests."""

import asyncio
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import pytest

from queenspark import AsyncQueen, Queen


class Recorder(ThreadingHTTPServer):
    """A server that remembers the headers of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Recording)
        self.seen: list[Message] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Recording(BaseHTTPRequestHandler):
    """Responds to everything with nothing."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Recorder)
        self.server.seen.append(self.headers)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Recorder]:
    with Recorder() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_headers_are_sent_with_every_request(server: Recorder) -> None:
    with Queen(server.url, api_key="k", headers={"X-Tenant": "north", "Authorization": "no"}) as queen:
        for _ in range(2):
            queen.admin.request("GET", "me")
    assert [headers.get_all("X-Tenant") for headers in server.seen] == [["north"]] * 2
    assert {headers["Authorization"] for headers in server.seen} == {"Bearer k"}


def test_a_function_returns_the_headers_of_each_request(server: Recorder) -> None:
    numbers = count(1)

    async def request() -> None:
        async with AsyncQueen(server.url, headers=lambda: {"X-Number": str(next(numbers))}) as queen:
            for _ in range(2):
                await queen.admin.request("GET", "me")

    asyncio.run(request())
    assert [headers["X-Number"] for headers in server.seen] == ["1", "2"]
