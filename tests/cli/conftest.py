"""The command line, called as a person calls it, against a real broker."""

import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from queenspark.cli import main
from tests.broker_process import Broker


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The result of a command with `--json`."""
        return json.loads(self.out)

    def json_lines(self) -> list[Any]:
        """The results of a command with `--json` that prints a line for each."""
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Result]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command: `command("push", "orders", stdin=b"1")`."""

    def run(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["queenspark", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Result(int(ended.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def queenspark(command: Command, shared_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command that talks to a running broker."""
    monkeypatch.setenv("QUEENSPARK_URL", shared_broker.url)
    return command


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="queenspark-test-", ignore_cleanup_errors=True) as name:
        yield Path(name)
