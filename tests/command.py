"""The command line, called as a person calls it."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from queenspark.cli import main


@dataclass(frozen=True)
class Result:
    """The result of a command: its exit code and its output."""

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


def commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs commands in this process: `command("push", "orders", stdin=b"1")`."""

    def run(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["queenspark", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Result(int(ended.value.code or 0), printed.out, printed.err)

    return run
