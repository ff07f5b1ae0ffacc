"""`queenspark up`: one command starts everything, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

import httpx2
import pytest

from queenspark import LeaseLost, Queen
from queenspark.cli.pipeline_process import STOP_SECONDS
from tests.broker_process import clean_environment, free_port
from tests.command import Command
from tests.postgres_servers import prepare_data_dir
from tests.processes import arguments_of, descendants, gone, members, program_of
from tests.wire.deadline import eventually


class Up:
    """A running `queenspark up`."""

    def __init__(
        self,
        data_dir: Path,
        port: int,
        *,
        pipeline: bool,
        before: Sequence[str],
        ui_port: int | None = None,
        **settings: object,
    ) -> None:
        self.data_dir = data_dir
        self.said = ""
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "queenspark", "up", "--data-dir", str(data_dir), "--port", str(port)]
        command += [] if pipeline else ["--no-pipeline"]
        command += ["--no-ui"] if ui_port is None else ["--ui-port", str(ui_port)]
        self.process = subprocess.Popen(
            [*before, *command],
            env=clean_environment(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def wait_until_up(self) -> "Up":
        """Wait for the panel; all output until then is in `printed`."""
        assert self.process.stdout is not None
        self.printed = ""
        while "╰" not in self.printed:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            self.printed += line
        return self

    def wait_until_said(self, text: str) -> None:
        """Wait for a line on standard error; lines up to it are in `said`."""
        assert self.process.stderr is not None
        while text not in self.said:
            line = self.process.stderr.readline()
            assert line, self.said
            self.said += line

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and standard error."""
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


StartUp = Callable[..., Up]

LONG_PIPELINE_STARTS = pytest.param("the pipeline starts", marks=pytest.mark.long)
LONG_SPARK_STARTS = pytest.param("Spark starts", marks=pytest.mark.long)
LONG_PIPELINE_LEADS = pytest.param("the pipeline leads", marks=pytest.mark.long)


@pytest.fixture
def up(folder: Path) -> Iterator[StartUp]:
    """Starts `queenspark up`s, and ends those that the test has not ended.

    Their cluster is there already, which is quicker; with `made=False` they make it themselves.
    """
    started: list[Up] = []

    def start(
        port: int | None = None,
        *,
        pipeline: bool = False,
        before: Sequence[str] = (),
        made: bool = True,
        ui_port: int | None = None,
        **settings: object,
    ) -> Up:
        port = port or free_port()
        if made and "database_url" not in settings and not (folder / "data").exists():
            prepare_data_dir(folder / "data")
        started.append(
            Up(folder / "data", port, pipeline=pipeline, before=before, ui_port=ui_port, **settings)
        )
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.end()
        for stream in (running.process.stdout, running.process.stderr):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_starts_everything_says_where_and_ends_without_a_trace(up: StartUp, how: signal.Signals) -> None:
    running = up(made=how != signal.SIGTERM).wait_until_up()
    assert httpx2.get(f"{running.url}/health").status_code == 200
    for fact in (running.url, str(running.data_dir), "broker.log", "postgres.log", "curl", "Ctrl-C"):
        assert fact in running.printed
    children = descendants(running.process.pid)
    assert len(children) > 2
    code, said = running.end(how)
    assert (code, "Stopped." in said, "Traceback" in said) == (0, True, False)
    assert [pid for pid in children if not gone(pid)] == []


def test_the_dashboard_is_included_and_linked_from_the_broker(up: StartUp) -> None:
    port = free_port()
    running = up(ui_port=port).wait_until_up()
    address = f"http://127.0.0.1:{port}"
    assert address in running.printed
    browser = {"Accept": "text/html"}
    for path, page in (("/", address), ("/streams", f"{address}/streams")):
        found = httpx2.get(f"{running.url}{path}", headers=browser)
        assert (found.status_code, found.headers["location"]) == (302, page)
        assert httpx2.get(f"{running.url}{path}").status_code == 404

    def is_there() -> bool:
        with suppress(httpx2.TransportError):
            return httpx2.get(f"{address}/streams").status_code == 200
        return False

    eventually(is_there, within=60)
    children = descendants(running.process.pid)
    assert running.end()[0] == 0
    assert [pid for pid in children if not gone(pid)] == []


@pytest.mark.parametrize("moment", ["Java starts", LONG_SPARK_STARTS, LONG_PIPELINE_LEADS])
def test_ctrl_c_ends_spark_within_seconds(up: StartUp, moment: str) -> None:
    running = up(pipeline=True).wait_until_up()

    def has_come() -> bool:
        if moment == "the pipeline leads":
            stats = httpx2.get(f"{running.url}/api/v1/resources/streams/stats").json()
            return bool(stats["pipeline"]["active"])
        return "java" in map(program_of, descendants(running.process.pid))

    eventually(has_come, within=120)
    if moment == "Spark starts":
        time.sleep(2)  # it takes several seconds, and does not say when it begins
    children = descendants(running.process.pid)
    begin = time.monotonic()
    code, said = running.end(signal.SIGINT)
    assert time.monotonic() - begin < STOP_SECONDS  # after which it would be ended by force
    assert (code, "Traceback" in said) == (0, False)
    assert "Traceback" not in text_of(running.data_dir / "pipeline.log")
    # Workers of Spark end when they notice that Java has.
    eventually(lambda: all(gone(pid) for pid in children), within=10)


@pytest.mark.parametrize("moment", [LONG_PIPELINE_STARTS, "Java starts", LONG_SPARK_STARTS])
def test_after_a_kill_nothing_of_spark_stays(up: StartUp, database: str, moment: str) -> None:
    running = up(database_url=database, pipeline=True)

    def pipelines() -> list[int]:
        return [pid for pid in descendants(running.process.pid) if "pipeline" in arguments_of(pid)]

    def has_java(session: int) -> bool:
        found = [arguments_of(pid) for pid in members(session) if program_of(pid) == "java"]
        spark, launcher = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.launcher.Main"
        return any(spark in each and launcher not in each for each in found)

    (session,) = eventually(pipelines, within=60)
    if moment != "the pipeline starts":
        eventually(lambda: has_java(session), within=120)
    if moment == "Spark starts":
        time.sleep(2)  # it takes several seconds, and does not say when it begins
    running.process.kill()
    running.process.wait()
    eventually(lambda: members(session) == [], within=60)


def text_of(path: Path) -> str:
    """The content of a file, if it exists."""
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.long
def test_pushed_messages_survive_a_restart(up: StartUp, command: Command, queue: str) -> None:
    running = up().wait_until_up()
    assert command("push", queue, "42", "--url", running.url).code == 0
    running.end()
    running = up().wait_until_up()
    (message,) = command("pop", queue, "--json", "--url", running.url).json_lines()
    assert message["data"] == 42


def test_a_second_one_on_the_same_data_is_refused_in_one_sentence(up: StartUp) -> None:
    first = up().wait_until_up()
    second = up()
    printed, said = second.process.communicate(timeout=30)
    assert (second.process.returncode, printed) == (2, "")
    assert (
        said
        == f"The data folder {first.data_dir} is in use: process {first.process.pid} runs Queenspark on it.\n"
    )
    assert httpx2.get(f"{first.url}/health").status_code == 200


def test_a_taken_port_is_refused_before_anything_is_made(up: StartUp, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = up(port, made=False)
        _, said = refused.process.communicate(timeout=30)
    assert refused.process.returncode == 2
    assert said == f"Port {port} is already in use: choose another one with --port.\n"
    assert not (folder / "data" / "postgres").exists()


def test_killed_processes_are_restarted_without_losing_messages(
    up: StartUp, command: Command, queue: str
) -> None:
    running = up().wait_until_up()
    assert command("push", queue, "42", "--url", running.url).code == 0

    (broker,) = brokers_of(running)
    os.kill(broker, signal.SIGKILL)
    pushes_again(command, queue, running)
    restarted = brokers_of(running)
    assert restarted not in ([], [broker])
    running.wait_until_said("The broker ended (killed by SIGKILL); restarting it in 0.5 s.\n")
    running.wait_until_said("The broker is up again.\n")

    os.kill(postmaster_of(running), signal.SIGKILL)
    pushes_again(command, queue, running)
    assert brokers_of(running) == restarted, "the broker waits for PostgreSQL"
    found = command("pop", queue, "--batch", "2", "--json", "--url", running.url).json_lines()
    assert [message["data"] for message in found] == [42, "again"]
    running.wait_until_said("PostgreSQL ended (killed by SIGKILL); restarting it in 0.5 s.\n")
    running.wait_until_said("PostgreSQL is up again.\n")

    for pid in (postmaster_of(running), *brokers_of(running)):
        os.kill(pid, signal.SIGKILL)
    pushes_again(command, queue, running)
    children = descendants(running.process.pid)
    assert running.end()[0] == 0
    assert [pid for pid in children if not gone(pid)] == []


@pytest.mark.long
def test_a_child_that_fails_at_once_every_time_ends_it_with_the_reason(up: StartUp, folder: Path) -> None:
    missing = folder / "no-such-file"
    running = up(pipeline=True, spark_properties=missing).wait_until_up()
    children = descendants(running.process.pid)
    _, said = running.process.communicate(timeout=120)
    assert running.process.returncode == 1
    *events, reason = said.splitlines()
    assert (
        sum("The pipeline ended (exit code 2: QUEENSPARK_SPARK_PROPERTIES is" in event for event in events)
        == 4
    )
    assert reason.startswith("The pipeline failed 5 times in a row, each time within 30 s of its start: ")
    assert str(missing) in reason
    assert str(running.data_dir / "pipeline.log") in reason
    assert [pid for pid in children if not gone(pid)] == []


def test_it_ends_when_told_to_while_it_restarts_something(up: StartUp) -> None:
    running = up().wait_until_up()
    children = descendants(running.process.pid)
    os.kill(postmaster_of(running), signal.SIGKILL)
    running.wait_until_said("PostgreSQL ended")
    code, said = running.end()
    assert (code, "Traceback" in said) == (0, False)
    eventually(lambda: all(gone(pid) for pid in children), within=10)


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.timeout(600)
def test_every_message_is_in_one_window_after_any_kill(up: StartUp) -> None:
    running = up(pipeline=True).wait_until_up()
    windows: dict[str, list[int]] = {}
    enough = threading.Event()
    numbers = count()

    def push(queen: Queen) -> int:
        for number in numbers:
            queen.queue("numbers").partition(str(number % 5)).push({"n": number})
            if enough.is_set():
                break
        return number + 1

    with Queen(running.url, retries=50) as queen, ThreadPoolExecutor(1) as threads:
        queen.queue("numbers").create()
        stream = queen.stream("all", "tests").sources(["numbers"]).partitioned()
        stream.tumbling_time("1s").grace_period("1s").define()
        pushing = threads.submit(push, queen)
        consumer = queen.consumer("all", "readers")

        def take() -> None:
            if window := consumer.poll(wait=1):
                windows[window.id] = window.map(lambda message: message.data["n"])
                with suppress(LeaseLost):  # then it comes again
                    window.ack()

        for victims in (
            ["serve"],
            ["postgres"],
            ["pipeline"],
            ["postgres", "serve"],
            ["pipeline", "postgres"],
        ):
            before = len(windows)
            while len(windows) < before + 5:
                take()
            for victim in victims:
                kill_one(running, victim)
        enough.set()
        pushed = pushing.result(60)
        while sum(map(len, windows.values())) < pushed:
            take()
    assert sorted(chain.from_iterable(windows.values())) == list(range(pushed))
    assert running.end()[0] == 0


def kill_one(running: Up, part: str) -> None:
    """Kill one of its processes, which is there or will be soon."""

    def found() -> list[int]:
        if part == "postgres":
            return [pid for pid in [postmaster_of(running)] if not gone(pid)]
        return [pid for pid in descendants(running.process.pid) if part in arguments_of(pid)[:4]]

    os.kill(eventually(found, within=60)[0], signal.SIGKILL)


def brokers_of(running: Up) -> list[int]:
    """The process ids of its broker, if it has one at the moment."""
    return [pid for pid in descendants(running.process.pid) if "serve" in arguments_of(pid)]


def postmaster_of(running: Up) -> int:
    """The process id of its PostgreSQL."""
    return int((running.data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def pushes_again(command: Command, queue: str, running: Up) -> None:
    """Wait until a message can be pushed."""
    options = ["--transaction-id", "again", "--url", running.url]
    eventually(lambda: command("push", queue, '"again"', *options).code == 0, within=60)
    assert running.process.poll() is None


def test_after_a_kill_the_broker_goes_and_the_next_one_takes_over(
    up: StartUp, command: Command, queue: str
) -> None:
    running = up().wait_until_up()
    assert command("push", queue, "42", "--url", running.url).code == 0
    left = running.data_dir / "tmp" / "spark-0" / "left"
    left.parent.mkdir()
    left.touch()
    (broker,) = brokers_of(running)
    assert f"TMPDIR={left.parents[1]}" in Path(f"/proc/{broker}/environ").read_text().split("\0")
    children = descendants(running.process.pid)
    running.process.kill()
    running.process.wait()
    running = up().wait_until_up()
    (message,) = command("pop", queue, "--json", "--url", running.url).json_lines()
    assert message["data"] == 42
    eventually(lambda: all(gone(pid) for pid in children))
    assert not left.exists(), "files of killed processes are removed at the next start"


def test_a_signal_while_it_starts_leaves_nothing_behind(up: StartUp) -> None:
    running = up()
    pid_file = running.data_dir / "postgres" / "postmaster.pid"
    eventually(pid_file.exists, within=60)
    children = descendants(running.process.pid)
    code, said = running.end()
    assert (code, "Traceback" in said) == (0, False)
    assert [pid for pid in children if not gone(pid)] == []


def test_under_nohup_it_goes_on_when_the_terminal_goes(up: StartUp) -> None:
    running = up(before=["nohup"]).wait_until_up()
    running.process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert httpx2.get(f"{running.url}/health").status_code == 200
    assert running.end()[0] == 0


@pytest.mark.parametrize("end", [pytest.param("stdout", marks=pytest.mark.long), "stderr"])
def test_it_exits_cleanly_when_its_output_is_closed(up: StartUp, end: str) -> None:
    running = up().wait_until_up()
    stream = running.process.stdout if end == "stdout" else running.process.stderr
    assert stream is not None
    stream.close()
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(60) == 0


def test_with_a_database_url_no_postgresql_is_started(up: StartUp, database: str) -> None:
    running = up(database_url=database).wait_until_up()
    assert not (running.data_dir / "postgres").exists()
    assert httpx2.get(f"{running.url}/health").status_code == 200
    assert running.end()[0] == 0


def test_an_unreachable_database_is_reported_in_one_sentence(up: StartUp) -> None:
    running = up(database_url=f"postgresql://127.0.0.1:{free_port()}/none")
    _, said = running.process.communicate(timeout=60)
    assert running.process.returncode == 2
    assert "Traceback" not in said
