"""Runs statements on a broker, and prints the results."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import NoReturn

import msgspec

from queenspark.cli.broker_api import BrokerApi, failures
from queenspark.cli.output import err, out, say
from queenspark.cli.sql.hint import no_rows_hint
from queenspark.cli.sql.live import LiveRows
from queenspark.cli.sql.problem import shown_problem
from queenspark.cli.sql.results import counted, print_result, row_of
from queenspark.cli.sql.text import requests
from queenspark.client.errors import SqlError
from queenspark.client.sql_results import SentResult, columns_of, failed
from queenspark.client.sync.lines import Lines
from queenspark.signals import handlers_kept, on_stop

_PATIENCE = 10.0  # seconds without a row before a hint is printed


class StatementFailed(Exception):
    """A statement was refused or failed; the error is printed already."""


class Runner:
    """Runs the statements of a text, and prints tables or JSON."""

    def __init__(
        self, broker: BrokerApi, *, as_json: bool = False, dry_run: bool = False, timeout: float | None = None
    ) -> None:
        self._broker = broker
        self._as_json = as_json
        self._dry_run = dry_run
        self._timeout = timeout

    def run(self, text: str) -> None:
        """Run all statements: those up to the next SELECT together, all of them or none.

        Ctrl-C ends a SELECT; statements after it are not run.
        """
        parts = requests(text)
        for number, part in enumerate(parts, start=1):
            try:
                response = self._broker.sql(part, dry_run=self._dry_run, timeout=self._timeout)
                if not isinstance(response, Lines):
                    for result in response:
                        self._print(result)
                elif not self._print_select(response) and number < len(parts):
                    say("The statements after this SELECT were not run.")
                    return
            except SqlError as error:
                err().print(shown_problem(error, text))
                raise StatementFailed from None

    def _print(self, sent: msgspec.Raw) -> None:
        if self._as_json:
            _write_line(bytes(sent))
        else:
            print_result(msgspec.json.decode(sent, type=SentResult), dry_run=self._dry_run)

    def _print_select(self, lines: Lines) -> bool:
        """Print rows as they arrive; return whether the SELECT finished."""
        with closing(lines), failures(), handlers_kept():
            on_stop(_stop)
            try:
                _print_json_lines(lines) if self._as_json else _print_live(lines, self._broker.url)
            except KeyboardInterrupt:
                return False
        return True


def _print_json_lines(lines: Lines) -> None:
    while found := lines.more():
        for line in found:
            _check(line)
            _write_line(line)


def _print_live(lines: Lines, url: str) -> None:
    first = lines.more()
    columns = columns_of(first[0] if first else b"")
    shown = LiveRows(columns, out())
    count = 0
    try:
        say("Rows are printed as they arrive; press Ctrl-C to stop.")
        with _hint_after(_PATIENCE, url, lines) as hint:
            found = first[1:]
            while found or (found := lines.more()):
                hint.cancel()
                rows = [row_of(line, columns) for line in found if not line.startswith(b"{")]
                if rows:
                    shown.print(rows)
                    count += len(rows)
                _check(found[-1])
                found = []
            if not count and not hint.finished.is_set():
                say(no_rows_hint(url, lines))
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # which has shown ^C
            say("")
        raise
    finally:
        say(f"{counted(count)}.")


def _check(line: bytes) -> None:
    """Rows are arrays; a last line that is an object says why there are no more."""
    if line.startswith(b"{") and (error := failed(line)) is not None:
        raise error


@contextmanager
def _hint_after(seconds: float, url: str, lines: Lines) -> Iterator[threading.Timer]:
    """Print a hint after some time without rows."""
    hint = threading.Timer(seconds, lambda: say(no_rows_hint(url, lines)))
    hint.daemon = True
    if sys.stderr.isatty():
        hint.start()
    try:
        yield hint
    finally:
        hint.cancel()


def _write_line(line: bytes) -> None:
    sys.stdout.write(line.decode() + "\n")
    sys.stdout.flush()


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Ctrl-C ends the SELECT, other signals the command; neither is an error."""
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(0)
