"""Malicious requests: each gets a clear response, and the broker survives."""

import gzip
import json
import resource
import socket
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.access.conftest import make_key
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.wire.api import Api, refused
from tests.wire.deadline import eventually
from tests.wire.raw_connection import RawConnection

PUSH = "/api/v1/push"


@pytest.fixture(scope="module")
def hasty(module_broker: StartBroker) -> Broker:
    """A broker that does not wait long for a request."""
    return module_broker(request_seconds=1)


@pytest.fixture(scope="module")
def patient(module_broker: StartBroker) -> Broker:
    """A broker with the default timeouts."""
    return module_broker()


@pytest.fixture
def api(hasty: Broker) -> Iterator[Api]:
    """The API; after each test the broker must still be there."""
    with Api(hasty.url) as api:
        yield api
        assert api.get("/health").status_code == 200


def ends_with(connection: socket.socket) -> bytes:
    """All that a connection gives until it is closed."""
    received = b""
    connection.settimeout(20)
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=20)


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
def test_an_incomplete_request_times_out(hasty: Broker, api: Api, begun: bytes) -> None:
    with connect(hasty) as slow:
        slow.sendall(begun)
        response = ends_with(slow)
    assert response == b"" or response.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400")), response


def test_a_head_sent_byte_by_byte_times_out(hasty: Broker, api: Api) -> None:
    with connect(hasty) as slow:
        slow.settimeout(0.2)
        slow.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
        for _ in range(100):
            try:
                slow.sendall(b"x")
                received = slow.recv(1000)
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                received = b""
            break
        else:
            pytest.fail("the connection was left open")
    assert received[:12] in (b"HTTP/1.1 408", b"")


def test_a_silent_connection_is_closed(hasty: Broker, api: Api) -> None:
    with connect(hasty) as silent:
        assert ends_with(silent)[:12] in (b"HTTP/1.1 408", b"")


def test_an_endless_head_is_431(hasty: Broker, api: Api) -> None:
    with connect(hasty) as endless:
        try:
            endless.sendall(b"GET /health HTTP/1.1\r\n")
            for number in range(10_000):
                endless.sendall(b"X-%d: %s\r\n" % (number, b"x" * 1000))
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert ends_with(endless)[:12] in (b"HTTP/1.1 431", b"")


def test_many_idle_connections_do_not_block_others(patient: Broker, full_size: bool) -> None:
    count = 10_000 if full_size else 300
    with room_for(count), Api(patient.url) as api, ExitStack() as open_ones:
        for _ in range(count):
            open_ones.enter_context(connect(patient))
        # Connections of earlier tests may still be closing, so the number before is not part of the sum.
        eventually(lambda: open_sockets(patient.pid) >= count, within=60)
        assert api.get("/health").status_code == 200
        assert api.push("q", 1)
        assert open_sockets(patient.pid) >= count, "some were closed meanwhile"


@contextmanager
def room_for(count: int) -> Iterator[None]:
    """Let this process open that many files; skip the test where the system does not allow it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"the system allows {hard} open files per process, the test needs {needed}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_sockets(pid: int) -> int:
    """The number of sockets that a process has open."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            found += str(link.readlink()).startswith("socket:")
    return found


CHUNKED = b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n%s\r\n"


def test_endless_trailers_are_refused(hasty: Broker, api: Api) -> None:
    for size in (4_000, 5):  # of one header: in long lines, and in many short ones
        with connect(hasty) as endless:
            sent = 0
            try:
                endless.sendall(CHUNKED % b"" + b"0\r\n")
                while sent < 20_000_000:
                    endless.sendall(b"".join(b"x-%d: %s\r\n" % (n, b"x" * size) for n in range(100)))
                    sent += 100 * size
            except (BrokenPipeError, ConnectionResetError):
                pass
            assert ends_with(endless)[:12] in (b"HTTP/1.1 431", b"")
        assert sent < 20_000_000, "all of it was taken"


def test_trailers_are_not_headers(module_broker: StartBroker) -> None:
    closed = module_broker(access_control="true")
    _, key = make_key(closed.database_url, role="admin")
    body = b"0\r\nX-API-Key: %s\r\n\r\n" % key.encode()
    for head, expected in ((b"", 401), (b"X-API-Key: %s\r\n" % key.encode(), 400)):
        with RawConnection(closed.port) as connection:
            connection.send(CHUNKED % head + body)
            assert connection.status() == expected


def test_trailers_of_requests_on_one_connection_are_ignored(hasty: Broker, api: Api) -> None:
    body = b'{"items":[]}'
    chunks = b"%x\r\n%s\r\n0\r\nX-Sum: %s\r\n\r\n" % (len(body), body, b"y" * 40_000)
    with RawConnection(hasty.port) as connection:
        for _ in range(5):
            connection.send(CHUNKED % b"" + chunks)
            assert connection.response()[0] in (200, 201)


SMUGGLED = {
    "two lengths": b"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
    "a length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks that are none": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Content-Length : 2\r\n\r\n{}",
    "a folded header": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "a length with a plus": b"Content-Length: +2\r\n\r\n{}",
    "a bare line feed": b"Content-Length: 2\nTransfer-Encoding: chunked\r\n\r\n{}",
    "a chunk of a huge size": b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    "a zero byte in a header": b"X: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("trick", SMUGGLED)
def test_an_ambiguous_request_hides_no_second_request(hasty: Broker, api: Api, trick: str) -> None:
    following = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(hasty) as connection:
        connection.sendall(b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\n" + SMUGGLED[trick] + following)
        connection.shutdown(socket.SHUT_WR)
        response = ends_with(connection)
    assert b"queenspark_" not in response, "the second request got a response"
    assert response[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 408", b""), response


def test_a_compressed_body_is_415(api: Api) -> None:
    bomb = gzip.compress(b'{"items":[]}' + b" " * 10_000_000)
    for encoding, body in (("gzip", bomb), ("deflate", zlib.compress(bomb)), ("br", b"x"), ("zstd", b"x")):
        response = api.http.post(PUSH, content=body, headers={"Content-Encoding": encoding})
        assert "compressed" in refused(response, 415)
    assert api.http.post(PUSH, content=b'{"items":[]}', headers={"Content-Encoding": "identity"}).is_success


BOMBS: dict[str, Callable[[], bytes]] = {
    "arrays": lambda: b"[" * 1_000_000,
    "nested payload": lambda: b'{"items":[{"queue":"q","payload":' + b"[" * 200_000 + b"]" * 200_000 + b"}]}",
    "nested objects": lambda: b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "a million items": lambda: b'{"items":[' + b'{"queue":"q"},' * 999_999 + b'{"queue":"q"}]}',
    "a huge number": lambda: b'{"items":[{"queue":"q","transactionId":' + b"9" * 1_000_000 + b"}]}",
    "a huge exponent": lambda: b'{"items":[{"queue":' + b"1e999999999" + b"}]}",
    "many keys": lambda: json.dumps({f"k{number}": 1 for number in range(200_000)}).encode(),
    "a huge string": lambda: json.dumps({"items": [{"queue": "q" * 5_000_000}]}).encode(),
    "a lone surrogate": lambda: b'{"items":[{"queue":"\\ud800"}]}',
    "no JSON": lambda: b"\xff" * 1000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_of_json_is_400(api: Api, bomb: str) -> None:
    assert refused(api.http.post(PUSH, content=BOMBS[bomb]()), 400)


def test_a_body_that_is_too_large_is_413(module_broker: StartBroker) -> None:
    with Api(module_broker(max_body_bytes=10_000).url) as small:
        assert refused(small.http.post(PUSH, content=b"x" * 20_000), 413)

        def parts() -> Iterator[bytes]:
            for _ in range(30):
                yield b"x" * 1000

        assert refused(small.http.post(PUSH, content=parts()), 413)
        assert small.get("/health").status_code == 200


def test_requests_on_one_connection_are_served_in_order(hasty: Broker, api: Api) -> None:
    with RawConnection(hasty.port) as connection:
        connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        statuses = ends_after(connection, 50)
    assert statuses == [b"200"] * 50


def ends_after(connection: RawConnection, count: int) -> list[bytes]:
    received = b""
    while received.count(b"HTTP/1.1 ") < count:
        received += connection._some()
    return [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]]
