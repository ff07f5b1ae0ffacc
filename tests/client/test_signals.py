"""Consumers as programs: interrupted, terminated, killed."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from queenspark import Event, Queen
from tests.broker_process import Broker
from tests.client.conftest import SOON, lease, sealed
from tests.client.proxy import Proxy
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.deadline import eventually

KINDS = pytest.mark.parametrize("kind", ["sync", "sync-threads", "async", "async-plain"])


class Program:
    """`tests.client.programs` as a process."""

    def __init__(self, kind: str, url: str, stream: str, seconds: float) -> None:
        command = [sys.executable, "-m", "tests.client.programs", kind, url, stream, str(seconds)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def says(self, text: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith(text)

    def end(self) -> tuple[int, str]:
        """Its exit code and the rest of its output."""
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    """Programs that are ended after the test."""
    started: list[Program] = []
    yield started
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
        program.process.communicate()


def start(programs: list[Program], kind: str, broker: Broker, stream: StreamApi, seconds: float) -> Program:
    programs.append(Program(kind, broker.url, stream.name, seconds))
    programs[-1].says("got")
    return programs[-1]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("sync", signal.SIGINT),
        ("sync-threads", signal.SIGINT),
        ("sync-threads", signal.SIGTERM),
        ("async", signal.SIGINT),
        ("async-plain", signal.SIGINT),
    ],
)
def test_a_signal_lets_the_window_in_hand_be_finished_and_no_further_one_be_taken(
    programs: list[Program], shared_broker: Broker, stream: StreamApi, kind: str, number: signal.Signals
) -> None:
    for value in range(3):
        sealed(stream, value)
    program = start(programs, kind, shared_broker, stream, 0.2)
    program.process.send_signal(number)
    code, said = program.end()
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == ["noticed", "did", "end"]
    assert len(stream.drain()) == 2


@KINDS
def test_a_second_interrupt_ends_it_at_once(
    programs: list[Program], shared_broker: Broker, stream: StreamApi, kind: str
) -> None:
    sealed(stream, 1)
    program = start(programs, kind, shared_broker, stream, 60)
    program.process.send_signal(signal.SIGINT)
    program.says("noticed")  # two at the same moment would be one
    began = time.monotonic()
    program.process.send_signal(signal.SIGINT)
    code, said = program.end()
    assert time.monotonic() - began < SOON
    assert code != 0
    assert said == ""
    stream.expire_leases()
    assert stream.poll()["retryCount"] == 0


def test_a_signal_at_any_moment_of_a_wait_does_no_harm() -> None:
    """The handler of a signal runs in the thread that waits, and raises the flag that it waits for."""
    program = """
import signal
from queenspark.client.sync.tasks import Flag

flag = Flag()
signal.signal(signal.SIGALRM, lambda *_: flag.set())
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
for _ in range(3000):
    flag = Flag()
    flag.wait(0.0004)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_a_window_is_redelivered_when_its_consumer_is_killed(
    programs: list[Program], shared_broker: Broker, stream: StreamApi
) -> None:
    lease(stream, 500)
    id_ = sealed(stream, 1)
    program = start(programs, "sync", shared_broker, stream, 60)
    program.process.kill()
    window = stream.poll()
    assert (window["id"], window["retryCount"]) == (id_, 0)


def test_a_broker_that_comes_back_is_used_again(far: Queen, proxy: Proxy, stream: StreamApi) -> None:
    seen: list[Any] = []
    kinds: list[str] = []

    def listen(event: Event) -> None:
        kinds.append(event.kind)

    consumer = far.consumer(stream.name, "g", on_event=listen)
    proxy.away()
    running = threading.Thread(
        target=lambda: consumer.process(lambda window: seen.append(window.key), limit=1)
    )
    running.start()
    eventually(lambda: "unreachable" in kinds)
    sealed(stream, 1, key="after")
    proxy.back()
    running.join(SOON)
    assert seen == ["after"]


def test_a_kill_with_prefetched_windows_loses_none(
    programs: list[Program], queen: Queen, shared_broker: Broker, stream: StreamApi
) -> None:
    """Unacked windows are redelivered; acked ones are not."""
    keys = [f"k{number:03}" for number in range(120)]
    stream.seal(*(minute(key, 1) for key in keys))
    programs.append(Program("quick", shared_broker.url, stream.name, 0.003))
    program = programs[-1].process
    assert program.stdout is not None
    done = [program.stdout.readline().split()[1] for _ in range(40)]
    program.kill()
    rest, _ = program.communicate(timeout=SOON)
    done += [line.split()[1] for line in rest.splitlines() if line.startswith("did k")]
    assert len(set(done)) == len(done)
    stream.expire_leases()
    again: list[str] = []
    queen.consumer(stream.name, "g").process(lambda window: again.append(window.key), idle=1)
    assert set(done) | set(again) == set(keys)
    assert len(set(again)) == len(again)
    assert len(set(done) & set(again)) < 40
