"""`queenspark streams` and `queenspark windows`."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.broker_process import Broker, clean_environment
from tests.command import Command
from tests.leader import LEAD
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api


@pytest.fixture
def stream(shared_broker: Broker) -> Iterator[StreamApi]:
    """A stream with two sealed windows."""
    with Api(shared_broker.url) as api:
        stream = StreamApi(api, shared_broker.database_url)
        stream.define(partitioned=True)
        stream.seal(minute("a", 1, count=3), minute("b", 2, revision=2))
        yield stream
        stream.close()


def test_streams_are_listed(queenspark: Command, stream: StreamApi) -> None:
    line = next(
        line
        for line in queenspark("streams", "list", "--search", stream.name).out.splitlines()
        if stream.name in line
    )
    assert "tests" in line
    assert "tumbling" in line
    names = [
        each["name"]
        for each in queenspark("streams", "list", "--search", stream.name, "--json").json()["streams"]
    ]
    assert stream.name in names
    assert stream.name not in queenspark("streams", "list", "--namespace", "elsewhere").out


def test_a_stream_is_shown_with_its_watermark_and_the_lag_of_its_groups(
    queenspark: Command, stream: StreamApi
) -> None:
    stats = {"stream": stream.id, "version": 1, "watermark_us": 180_000_000}
    stream.seal(stats=[stats])
    stream.ack(stream.poll("readers"))
    shown = queenspark("streams", "show", stream.name).out
    assert "1970-01-01T00:03:00.000Z" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("readers")]
    assert line.split()[1] == "1"
    assert queenspark("streams", "show", stream.name, "--json").json()["groups"][0]["lag"] == 1


def test_a_stream_is_defined_and_deleted(queenspark: Command, stream: StreamApi) -> None:
    name = f"{stream.name}-2"
    options = ["--source", stream.queue, "--partitioned", "--namespace", "tests"]
    given = ["--tumbling", "5", "--grace", "0.5", "--window-retention", "3600"]
    assert queenspark("streams", "define", name, *options, *given).code == 0
    shown = queenspark("streams", "show", name, "--json").json()
    assert (shown["windowDurationMs"], shown["windowGracePeriodMs"]) == (5000, 500)
    assert shown["windowRetentionMs"] == 3_600_000
    result = queenspark("streams", "define", name, *options, "--session", "30", "--event-time", "at")
    assert "version 2" in result.err
    result = queenspark("streams", "define", name, *options, "--sliding", "30")
    assert result.code == 1
    assert "window_slide_ms is required" in result.err
    assert queenspark("streams", "delete", name).code == 2
    assert queenspark("streams", "delete", name, "--yes").code == 0
    assert queenspark("streams", "show", name).code == 1


def test_a_stream_that_computes_is_defined(queenspark: Command, stream: StreamApi) -> None:
    stream.push({"user": "ann", "amount": 5})
    name = f"{stream.name}-3"
    options = ["--source", stream.queue, "--namespace", "tests", "--key", "data.user", "--rows", "5"]
    given = [
        "--where",
        "data.amount > 0",
        "--aggregate",
        "total=sum(data.amount)",
        "--aggregate",
        "n=count(*)",
    ]
    assert queenspark("streams", "define", name, *options, *given, "--having", "total > 1").code == 0
    shown = queenspark("streams", "show", name, "--json").json()
    assert (shown["windowType"], shown["windowSizeCount"], shown["emit"]) == ("rows", 5, "changes")
    assert (shown["key"], shown["where"]) == (["data.user"], "data.amount > 0")
    assert shown["aggregates"] == {"total": "SUM(data.amount)", "n": "COUNT(*)"}
    result = queenspark("streams", "define", name, *options, "--aggregate", "total")
    assert (result.code, "--aggregate 'total' is invalid" in result.err) == (2, True)
    result = queenspark("streams", "define", name, *options, "--emit", "final")
    assert "emit must be changes" in result.err


def test_columns_and_rows_are_defined(queenspark: Command, stream: StreamApi) -> None:
    stream.push({"user": "ann", "amount": 5})
    name = f"{stream.name}-4"
    options = ["--source", stream.queue, "--namespace", "tests", "--column", "net=data.amount * 2"]
    given = [*options, "--column", "who=upper(data.user)", "--key", "who", "--aggregate", "total=sum(net)"]
    result = queenspark("streams", "define", name, *given)
    assert result.err.strip() == f"Defined the stream {name}, version 1."
    shown = queenspark("streams", "show", name, "--json").json()
    assert shown["columns"] == {"net": "data.amount * 2", "who": "UPPER(data.user)"}
    result = queenspark("streams", "define", name, *options, "--column", "who")
    assert (result.code, "--column 'who' is invalid" in result.err) == (2, True)
    result = queenspark("streams", "define", f"{name}-rows", *given, "--output", "rows")
    assert result.err.strip() == (
        f"Defined the stream {name}-rows, version 1; its rows are in the queue tests.{name}-rows."
    )
    shown = queenspark("jobs", "show", f"tests.{name}-rows", "--json").json()
    assert "SUM(data.amount * 2) AS total" in shown["statement"]
    assert queenspark("jobs", "drop", f"tests.{name}-rows", "--yes").code == 0


def test_aggregates_are_printed(queenspark: Command, stream: StreamApi) -> None:
    stream.seal(minute("c", 3, values='{"total": 5, "mean": 2.5}'))
    result = queenspark("windows", stream.name, "--from-beginning", "--key", "c", "--count", "1")
    assert result.out.rstrip().endswith(": 1 record, total 5, mean 2.5")
    result = queenspark("windows", stream.name, "--from-beginning", "--key", "c", "--count", "1", "--json")
    assert result.json()["aggregates"] == {"total": 5, "mean": 2.5}


def test_window_queues_are_listed_only_when_asked_for(queenspark: Command, stream: StreamApi) -> None:
    def listed(name: str, *options: str) -> set[str]:
        response = queenspark("queues", "list", "--search", name, "--json", *options).json()
        return {queue["name"] for queue in response["queues"]}

    assert listed(stream.name, "--windows") - listed(stream.name) >= {f"windows:tests/{stream.name}"}
    assert stream.queue in listed(stream.queue)


def test_a_group_is_moved(queenspark: Command, stream: StreamApi) -> None:
    assert sorted(stream.drain()) == ["a1", "b2"]
    assert queenspark("streams", "seek", stream.name, "g", "--to", "1970-01-01T00:02:30").code == 0
    assert stream.drain() == ["b2"]
    assert queenspark("streams", "seek", stream.name, "g", "--to", "soon").code == 2


def test_windows_that_are_there_are_printed(queenspark: Command, stream: StreamApi) -> None:
    result = queenspark("windows", stream.name, "--from-beginning", "--count", "2")
    first, second = result.out.splitlines()
    assert first.endswith(" a 1970-01-01T00:01:00.000Z to 1970-01-01T00:02:00.000Z: 3 records")
    assert second.endswith(" b 1970-01-01T00:02:00.000Z to 1970-01-01T00:03:00.000Z: 1 record, revision 2")
    only = queenspark("windows", stream.name, "--from-beginning", "--count", "1", "--key", "b", "--json")
    assert only.json()["key"] == "b"
    # Nothing was lost, and the group is gone.
    assert sorted(stream.drain()) == ["a1", "b2"]
    assert stream.resource()["consumerGroups"] == ["g"]


def test_windows_are_followed_as_they_are_sealed(stream: StreamApi, shared_broker: Broker) -> None:
    command = [sys.executable, "-m", "queenspark", "windows", stream.name, "--json"]
    pipe = subprocess.PIPE
    environment = clean_environment(url=shared_broker.url)
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert stream.name in process.stderr.readline()
        stream.seal(minute("c", 3, count=7))
        window = json.loads(process.stdout.readline())
        assert (window["key"], window["count"], window["start"]) == ("c", 7, "1970-01-01T00:03:00.000Z")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_an_unknown_stream_is_an_error(queenspark: Command) -> None:
    result = queenspark("windows", "no-such-stream")
    assert result.code == 1
    assert "Stream not found" in result.err


def test_a_stream_is_explained_in_a_few_lines(queenspark: Command, stream: StreamApi) -> None:
    stream.run(LEAD.replace("+", "-"))
    first, second, reason, fix, *_ = queenspark("streams", "explain", stream.name).out.splitlines()
    assert first.startswith(f"The stream {stream.name}: ")
    assert second == "Next window: none open."
    assert reason.startswith("1. No pipeline has been leading since ")
    assert fix == "   Fix: start one with `queenspark pipeline`, or everything with `queenspark up`."
    response = queenspark("streams", "explain", stream.name, "--json").json()
    assert response["reasons"][0]["code"] == "no_pipeline"
    assert queenspark("streams", "explain", "nobody").code == 1
