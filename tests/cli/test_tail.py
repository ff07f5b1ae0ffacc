"""`queenspark tail`."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.broker_process import Broker, clean_environment
from tests.command import Command

Tail = subprocess.Popen[str]


@pytest.fixture
def follower(queenspark: Command, shared_broker: Broker, queue: str) -> Iterator[Tail]:
    """A `tail --json` that follows a queue already."""
    queenspark("push", queue, '"from before"')
    command = [sys.executable, "-m", "queenspark", "tail", queue, "--json"]
    environment = clean_environment(url=shared_broker.url)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        assert "Following" in process.stderr.readline()
        yield process
        process.kill()


def following(process: Tail, count: int) -> list[object]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline())["data"] for _ in range(count)]


def groups_of(queenspark: Command, queue: str) -> list[str]:
    """The lines about this queue in the list of groups."""
    listed = queenspark("groups", "list", "--limit", "1000").out
    return [line for line in listed.splitlines() if queue in line]


def test_new_messages_are_printed_at_once(queenspark: Command, queue: str, follower: Tail) -> None:
    queenspark("push", queue, "1")
    assert following(follower, 1) == [1]
    queenspark("push", queue, "2", "--partition", "made later")
    assert following(follower, 1) == [2]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_exits_cleanly_and_leaves_no_group(
    queenspark: Command, queue: str, follower: Tail, how: signal.Signals
) -> None:
    queenspark("push", queue, "1")
    following(follower, 1)
    assert groups_of(queenspark, queue) != []
    follower.send_signal(how)
    assert follower.wait(10) == 0
    assert groups_of(queenspark, queue) == []


def test_consumers_miss_nothing(queenspark: Command, queue: str, follower: Tail) -> None:
    queenspark("push", queue, "1")
    following(follower, 1)
    messages = queenspark("pop", queue, "--batch", "9", "--json").json_lines()
    assert [message["data"] for message in messages] == ["from before", 1]


def test_it_begins_with_existing_messages_and_ends_after_a_number(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, stdin=b"1\n2\n3\n")
    result = queenspark("tail", queue, "--from-beginning", "--count", "2", "--json")
    assert result.code == 0
    assert [message["data"] for message in result.json_lines()] == [1, 2]


def test_people_get_a_line_for_each_message(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, '{"a": "[red]"}', "--partition", "p", "--transaction-id", "t")
    line = queenspark("tail", queue, "--from-beginning", "--count", "1").out
    assert line.endswith(' p t {"a":"[red]"}\n')


class SlowBroker(ThreadingHTTPServer):
    """Returns empty responses, to long polls only when allowed; and records its responses."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.polled = threading.Event()
        self.may_respond = threading.Event()
        self.handled: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: SlowBroker

    def do_GET(self) -> None:
        if "wait=true" in self.path:
            self.server.polled.set()
            self.server.may_respond.wait(30)
        self.server.handled.append("poll")
        with suppress(BrokenPipeError):
            self.send_response(204)
            self.end_headers()

    def do_DELETE(self) -> None:
        self.server.handled.append("delete")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def slow_broker() -> Iterator[SlowBroker]:
    with SlowBroker() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.may_respond.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def polling(slow_broker: SlowBroker) -> Iterator[Tail]:
    """A `tail` that waits for a response."""
    command = [sys.executable, "-m", "queenspark", "tail", "q"]
    with subprocess.Popen(
        command, env=clean_environment(url=slow_broker.url), stderr=subprocess.PIPE, text=True
    ) as process:
        assert slow_broker.polled.wait(30)
        yield process
        process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_group_is_deleted_when_no_poll_is_in_flight(
    slow_broker: SlowBroker, polling: Tail, how: signal.Signals
) -> None:
    """A poll that the broker still works on would make the group again."""
    polling.send_signal(how)
    with pytest.raises(subprocess.TimeoutExpired):
        polling.wait(0.5)
    slow_broker.may_respond.set()
    assert polling.wait(10) == 0
    assert slow_broker.handled == ["poll", "poll", "delete"]


def test_a_second_ctrl_c_does_not_wait_for_the_broker(slow_broker: SlowBroker, polling: Tail) -> None:
    for how in (signal.SIGTERM, signal.SIGINT):  # two of one kind might become one
        polling.send_signal(how)
    assert polling.wait(10) == 0
    assert slow_broker.handled == ["poll", "delete"]


def test_headers_are_on_the_line_of_their_message(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1", "--header", "tenant=north")
    queenspark("push", queue, "2")
    first, second = queenspark("tail", queue, "--from-beginning", "--count", "2").out.splitlines()
    assert first.endswith(" tenant=north 1")
    assert "tenant" not in second
    line, _ = queenspark("tail", queue, "--from-beginning", "--count", "2", "--json").json_lines()
    assert line["headers"] == {"tenant": "north"}
