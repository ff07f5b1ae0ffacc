"""The prompt of `queenspark sql`: with keys that a test types, and on a terminal."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.sql.completion import SqlCompleter
from queenspark.cli.sql.names import Names
from queenspark.cli.sql.prompt import converse
from queenspark.cli.sql.runner import Runner
from tests.broker_process import Broker, clean_environment, free_port
from tests.wire.deadline import eventually
from tests.wire.sql import Sql


@pytest.fixture
def typed(
    shared_broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str], tuple[str, str]]:
    """Type at the prompt until Ctrl-D; return the output."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(keys: str) -> tuple[str, str]:
        with create_pipe_input() as keyboard, BrokerApi(shared_broker.url) as broker:
            keyboard.send_text(f"{keys}\x04")
            converse(broker, Runner(broker), input=keyboard, output=DummyOutput())
        return tuple(capsys.readouterr())  # type: ignore[return-value]

    return run


def test_statements_of_several_lines_are_typed(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, err = typed(f"INSERT INTO {clicks}\rVALUES ('a;b', 1)\r;\rDESCRIBE {clicks};\r")
    assert f"1 row inserted into {clicks}." in err
    assert "bigint" in out


def test_an_error_returns_to_the_prompt(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, err = typed(f"SELECT pgae FROM {clicks};\rDESCRIBE {clicks};\r")
    assert "did you mean page?" in err
    assert "bigint" in out


def test_ctrl_c_drops_the_input(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, err = typed(f"DROP STREAM {clicks}\x03DESCRIBE {clicks};\r")
    assert "bigint" in out
    assert "Dropped" not in err


def test_help_and_exit_need_no_semicolon(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, _ = typed(f"help\rexit\rDESCRIBE {clicks};\r")
    assert "Ctrl-D" in out
    assert "bigint" not in out


def test_names_at_the_broker_are_completed(shared_broker: Broker, sql: Sql, clicks: str) -> None:
    sql(f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks}")
    with BrokerApi(shared_broker.url) as broker:
        completer = SqlCompleter(Names(broker))

        def completed(before: str, after: str = "") -> list[str]:
            document = Document(before + after, len(before))
            return [each.text for each in completer.get_completions(document, CompleteEvent())]

        assert completed(f"SELECT page FROM {clicks[:-2]}") == [clicks]
        assert completed(f"PAUSE JOB busy_{clicks[:-2]}") == [f"busy_{clicks}"]
        assert completed("SELECT pag", f" FROM {clicks}") == ["page"]
        assert completed("SELECT COALES", f" FROM {clicks}") == ["COALESCE("]
        assert completed("SELECT pag", " FROM no_such_stream") == []
    with BrokerApi(f"http://127.0.0.1:{free_port()}") as nobody:
        assert Names(nobody).streams() == []


#: Lets the terminal control the process, so that Ctrl-C arrives as a signal.
PROGRAM = """
import fcntl, termios
from queenspark.cli import main

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
main()
"""


class Terminal:
    """`queenspark sql` on a terminal of its own."""

    def __init__(self, url: str, state: Path) -> None:
        self._ours, theirs = pty.openpty()
        environment = clean_environment(url=url) | {"XDG_STATE_HOME": str(state), "TERM": "xterm"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "sql"],
            env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self._seen = ""

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def expect(self, text: str, within: float = 20.0) -> None:
        """Wait until a text appears after the last one that was expected."""
        deadline = time.monotonic() + within
        while text not in self._seen:
            assert time.monotonic() < deadline, f"{text!r} is not in {self._seen!r}"
            try:
                self._seen += os.read(self._ours, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)
            if "\x1b[6n" in self._seen:  # it asks where the cursor is
                self._seen = self._seen.replace("\x1b[6n", "")
                self.type("\x1b[1;1R")
        self._seen = self._seen.partition(text)[2]

    def close(self) -> None:
        """Kill it in any state."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(shared_broker: Broker, tmp_path: Path) -> Iterator[Terminal]:
    """The prompt on a terminal."""
    terminal = Terminal(shared_broker.url, tmp_path)
    yield terminal
    terminal.close()


def test_on_a_terminal_ctrl_c_ends_a_select_and_the_prompt_is_there_again(
    terminal: Terminal, sql: Sql, clicks: str
) -> None:
    terminal.expect("Connected to")
    terminal.type(f"SELECT page FROM {clicks};\r")
    terminal.expect("press Ctrl-C to stop.")
    sql.emit(sql.temporary_queues()[0], '{"page": "home"}')
    terminal.expect("home")
    terminal.type("\x03")
    terminal.expect("1 row.")
    eventually(lambda: not sql.temporary_queues())
    terminal.type(f"DESCRIBE {clicks};\r")
    terminal.expect("bigint")
    terminal.type("\x04")
    assert terminal.process.wait(20) == 0
