"""`queenspark streams` and `queenspark windows` against the running system."""

import signal
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest

from tests.broker_process import clean_environment
from tests.command import Command, commands
from tests.system.system import System
from tests.wire.deadline import eventually


@pytest.fixture
def queenspark(
    system: System, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command against the system."""
    monkeypatch.setenv("QUEENSPARK_URL", system.api.url)
    return commands(monkeypatch, capsys)


def test_a_stream_from_its_definition_to_its_end(system: System, queenspark: Command) -> None:
    tag = uuid4().hex[:8]
    name, queue = f"activity-{tag}", f"clicks-{tag}"
    missing = queenspark("streams", "define", name, "--source", queue)
    assert (missing.code, f"{queue} does not exist" in missing.err) == (1, True)
    assert queenspark("push", queue, '{"page": "/"}', "--partition", "anna").code == 0
    options = ["--source", queue, "--partitioned", "--tumbling", "1", "--grace", "0"]
    defined = queenspark("streams", "define", name, *options)
    assert (defined.code, defined.err) == (0, f"Defined the stream {name}, version 1.\n")
    windows = queenspark("windows", name, "--from-beginning", "--count", "1")
    assert (windows.code, " anna " in windows.out, ": 1 record" in windows.out) == (0, True, True)

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = queenspark("streams", "show", name, "--json").json()
        return found

    assert shown()["progress"]["sealedWindows"] == 1
    line = next(
        line
        for line in queenspark("streams", "list", "--search", name).out.splitlines()
        if line.startswith(name)
    )
    assert line.split()[1:4] == ["default", "tumbling", "1"]
    window = system.api.post("/api/v1/stream/poll", {"streamName": name, "consumerGroup": "mail"}).json()
    system.ack(window["window"])
    eventually(lambda: shown()["groups"][0]["lag"] == 0)
    assert queenspark("streams", "seek", name, "mail", "--to", "2020-01-01").code == 0
    assert shown()["groups"][0]["lag"] == 1
    again = queenspark("streams", "define", name, *options[:-4], "--count", "3")
    assert again.err == f"Defined the stream {name}, version 2.\n"
    for _ in range(3):
        queenspark("push", queue, "1", "--partition", "bert")
    counted = queenspark("windows", name, "--from-beginning", "--count", "2", "--json").json_lines()
    assert [each["count"] for each in counted] == [1, 3]
    assert queenspark("streams", "delete", name, "--yes").code == 0
    gone = queenspark("streams", "show", name)
    assert (gone.code, "Stream not found" in gone.err) == (1, True)


def test_empty_windows_are_asked_for(system: System, queenspark: Command) -> None:
    tag = uuid4().hex[:8]
    name, queue = f"beats-{tag}", f"hearts-{tag}"
    queenspark("push", queue, "1")
    options = ["--source", queue, "--tumbling", "0.5", "--grace", "0", "--emit-empty"]
    assert queenspark("streams", "define", name, *options).code == 0
    printed = queenspark("windows", name, "--from-beginning", "--count", "4", "--json").json_lines()
    assert [each["count"] for each in printed] == [1, 0, 0, 0]
    assert queenspark("streams", "show", name, "--json").json()["emitEmpty"]
    assert queenspark("streams", "delete", name, "--yes").code == 0


def test_windows_are_followed_until_ctrl_c(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    command = [sys.executable, "-m", "queenspark", "windows", stream.name]
    environment = clean_environment(url=system.api.url)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline() == f"Following {stream.name}; press Ctrl-C to stop.\n"
        system.api.push(stream.queues[0], 1, 2, partition="k")
        assert process.stdout.readline().rstrip().endswith(": 2 records")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    assert system.api.read(f"/api/v1/resources/streams/{stream.name}")["consumerGroups"] == []
