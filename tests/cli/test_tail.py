"""`queenspark tail`."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.broker_process import Broker, clean_environment
from tests.cli.conftest import Command

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
    return [line for line in queenspark("groups").out.splitlines() if queue in line]


def test_what_arrives_is_printed_at_once(queenspark: Command, queue: str, follower: Tail) -> None:
    queenspark("push", queue, "1")
    assert following(follower, 1) == [1]
    queenspark("push", queue, "2", "--partition", "made later")
    assert following(follower, 1) == [2]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_and_leaves_no_group(
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


def test_it_begins_with_what_is_there_and_ends_after_a_number(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, stdin=b"1\n2\n3\n")
    result = queenspark("tail", queue, "--from-beginning", "--count", "2", "--json")
    assert result.code == 0
    assert [message["data"] for message in result.json_lines()] == [1, 2]


def test_people_get_a_line_for_each_message(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, '{"a": "[red]"}', "--partition", "p", "--transaction-id", "t")
    line = queenspark("tail", queue, "--from-beginning", "--count", "1").out
    assert line.endswith(' p t {"a":"[red]"}\n')
