"""Errors when the broker is down, or another server responds."""

import http.server
import threading
from collections.abc import Iterator

import pytest

from tests.broker_process import free_port
from tests.command import Command

READING = [
    ["status"],
    ["queues"],
    ["queues", "show", "q"],
    ["groups"],
    ["groups", "show", "g"],
    ["dlq"],
    ["dlq", "show", "1", "t"],
    ["pop", "q"],
    ["tail", "q"],
    ["push", "q", "1"],
    ["seek", "q", "g", "--to-end"],
    ["queues", "create", "q"],
    ["queues", "delete", "q", "--yes"],
    ["groups", "delete", "g", "--yes"],
    ["dlq", "retry", "1", "t"],
    ["dlq", "delete", "1", "t", "--yes"],
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_without_a_broker_one_sentence_names_the_url_and_the_fix(
    command: Command, arguments: list[str]
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = command(*arguments, "--url", url)
    assert result.code == 4
    assert url in result.err
    assert "queenspark up" in result.err
    assert result.out == ""
    assert "Traceback" not in result.err


def test_an_invalid_url_is_a_usage_error(command: Command) -> None:
    result = command("queues", "--url", "localhost:6632")
    assert (result.code, "QUEENSPARK_URL" in result.err) == (2, True)


@pytest.fixture
def stranger() -> Iterator[str]:
    """A web server that is no broker."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>welcome</html>")

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_server_that_is_no_broker_is_called_that(command: Command, stranger: str) -> None:
    result = command("queues", "--url", stranger)
    assert result.code == 1
    assert "not a Queenspark broker" in result.err
