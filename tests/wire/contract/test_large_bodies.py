"""A body that is too large or unused: its sender gets to read the response, within bounds."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import pytest

from queenspark import Queen
from queenspark.client.errors import TooLarge
from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.wire.raw_connection import RawConnection

LIMIT = 8192
MIB = 1024 * 1024
LARGE = 32 * MIB
PART = b" " * 65536
CHUNK = b"10000\r\n" + PART + b"\r\n"


@pytest.fixture(scope="module")
def small(postgres_18: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that takes small bodies only."""
    log_file = tmp_path_factory.mktemp("small") / "broker.log"
    with postgres_18.database() as url:
        started = Broker(url, log_file, max_body_bytes=LIMIT)
        yield started
        started.stop()


def head(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
@pytest.mark.parametrize(("path", "status"), [("/api/v1/push", 413), ("/nothing", 404), ("/health", 405)])
def test_a_sender_of_known_length_sends_all_and_reads_the_response(
    small: Broker, connection: str, path: str, status: int
) -> None:
    with RawConnection(small.port) as raw:
        raw.send(head(path, f"Content-Length: {LARGE}", f"Connection: {connection}"))
        for _ in range(LARGE // len(PART)):
            raw.send(PART)
        code, headers, body = raw.response()
        assert (code, headers["connection"]) == (status, "close")
        assert json.loads(body)["error"]
        assert raw.ended()


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
@pytest.mark.parametrize(("path", "status"), [("/api/v1/push", 413), ("/nothing", 404), ("/health", 405)])
def test_a_sender_of_chunks_sends_all_and_reads_the_response(
    small: Broker, connection: str, path: str, status: int
) -> None:
    with RawConnection(small.port) as raw:
        raw.send(head(path, "Transfer-Encoding: chunked", f"Connection: {connection}"))
        for _ in range(LARGE // len(PART)):
            raw.send(CHUNK)
        raw.send(b"0\r\n\r\n")
        code, headers, body = raw.response()
        assert (code, headers["connection"]) == (status, "close")
        assert json.loads(body)["error"]
        assert raw.ended()


@pytest.mark.parametrize("framing", [f"Content-Length: {LARGE}", "Transfer-Encoding: chunked"])
def test_the_response_arrives_while_the_sender_is_still_sending(small: Broker, framing: str) -> None:
    with RawConnection(small.port) as raw:
        raw.send(head("/api/v1/push", framing) + CHUNK)
        code, _, body = raw.response()
        assert code == 413
        assert str(LIMIT) in json.loads(body)["error"]
        raw.send(CHUNK)


def test_a_sender_that_waits_for_permission_is_refused_before_it_sends(small: Broker) -> None:
    with RawConnection(small.port) as raw:
        raw.send(head("/api/v1/push", f"Content-Length: {LARGE}", "Expect: 100-continue"))
        assert raw.response()[0] == 413


def test_a_sender_that_stops_sending_does_not_hold_its_connection(small: Broker) -> None:
    with RawConnection(small.port) as raw:
        raw.send(head("/api/v1/push", f"Content-Length: {LARGE}") + PART)
        assert raw.response()[0] == 413
        assert raw.ended()


def test_a_sender_that_never_ends_is_cut_off(small: Broker) -> None:
    sent = 0
    with RawConnection(small.port) as raw, suppress(ConnectionError):
        raw.send(head("/api/v1/push", "Transfer-Encoding: chunked"))
        while sent < 1024 * MIB:
            raw.send(CHUNK)
            sent += len(CHUNK)
    assert LARGE < sent < 128 * MIB


def test_a_connection_is_kept_after_a_small_unused_body(small: Broker) -> None:
    with RawConnection(small.port) as raw:
        for status in (404, 405):
            raw.send(head("/nothing" if status == 404 else "/health", "Content-Length: 5") + b"hello")
            code, headers, _ = raw.response()
            assert code == status
            assert "connection" not in headers
        raw.get("/health")
        assert raw.status() == 200


def test_a_client_of_the_standard_library_reads_the_response(small: Broker) -> None:
    """It asks for the end of the connection, and sends all before it reads."""
    request = urllib.request.Request(f"{small.url}/api/v1/push", data=b" " * LARGE)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=30)
    with refusal.value as response:
        assert response.code == 413
        assert str(LIMIT) in json.load(response)["error"]


def test_the_client_reads_the_response(small: Broker, queue: str) -> None:
    with Queen(small.url) as client:
        with pytest.raises(TooLarge, match=str(LIMIT)):
            client.queue(queue).push("x" * LARGE)
        client.queue(queue).push("small")
