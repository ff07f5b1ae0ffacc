"""The password of a broker's URL is in no error of the client."""

import asyncio
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from queenspark import AsyncQueen, InvalidValue, Queen, QueenError
from tests.broker_process import free_port

PASSWORD = "hunter2"


def printed(error: BaseException | None) -> str:
    """The messages of an error, and of those that a traceback prints with it."""
    if error is None:
        return ""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return f"{printed(before)}\n{error!r} {error}"


@pytest.mark.parametrize(
    "url",
    ["me:hunter2@127.0.0.1:1", "http://me:hunter2/3@127.0.0.1:1", "http://me:hunter2@127.0.0.1:port",
     "ftp://me:hunter2@127.0.0.1"],
)  # fmt: skip
def test_an_error_about_a_url_does_not_show_its_password(url: str) -> None:
    with pytest.raises(InvalidValue, match=r"url is .*127\.0\.0\.1") as refusal:
        Queen(url)
    assert PASSWORD not in printed(refusal.value)


def test_an_api_key_is_sent_instead_of_the_password_of_the_url() -> None:
    received: list[str | None] = []

    class Records(BaseHTTPRequestHandler):
        def do_DELETE(self) -> None:
            received.append(self.headers["Authorization"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"existed": true}')

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Records) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://me:{PASSWORD}@127.0.0.1:{server.server_port}"
        with Queen(url, api_key="qs_key") as queen:
            queen.queue("q").delete()
        with Queen(url) as queen:
            queen.queue("q").delete()
        server.shutdown()
    assert received == ["Bearer qs_key", f"Basic {b64encode(b'me:hunter2').decode()}"]


@contextmanager
def stranger() -> Iterator[str]:
    """The address of a web server that is no broker."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>welcome</html>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_error_of_a_request_does_not_show_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, stranger() as page:
        for address in (f"127.0.0.1:{free_port()}", f"127.0.0.1:{silent.getsockname()[1]}", page):
            url = f"http://me:{PASSWORD}@{address}"
            for error in (failed(url), asyncio.run(failed_async(url))):
                assert f"http://…@{address}" in str(error)
                assert PASSWORD not in printed(error)


def failed(url: str) -> QueenError:
    with Queen(url, retries=0, timeout=0.5) as queen, pytest.raises(QueenError) as error:
        queen.admin.status()
    return error.value


async def failed_async(url: str) -> QueenError:
    async with AsyncQueen(url, retries=0, timeout=0.5) as queen:
        with pytest.raises(QueenError) as error:
            await queen.admin.status()
    return error.value
