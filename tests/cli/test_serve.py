"""`queenspark serve` and `queenspark migrate`: a broker, and the schema that it needs."""

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.broker_process import Broker, clean_environment, free_port
from tests.command import Command


def test_serve_without_a_database_names_the_fix(command: Command) -> None:
    result = command("serve")
    assert result.code == 2
    assert "QUEENSPARK_DATABASE_URL" in result.err


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_serve_exits_cleanly_on_a_signal(broker: Callable[[], Broker], how: signal.Signals) -> None:
    running = broker()
    running.process.send_signal(how)
    assert running.process.wait(60) == 0


LONELY = """
import signal, time
from queenspark.cli import parent
signal.signal(signal.SIGTERM, lambda *_: print("asked", flush=True))
parent.ALONE_SECONDS = 0.5
parent.stop_with_parent()
time.sleep(60)
"""


def test_a_child_that_does_not_stop_without_its_parent_is_ended_by_force() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", LONELY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said, _ = child.communicate(timeout=30)
    assert (said, child.returncode) == ("asked\n", -signal.SIGKILL)


def test_serve_on_a_taken_port_fails_with_one_sentence(broker: Callable[[], Broker], database: str) -> None:
    taken = broker()
    environment = clean_environment(database_url=database, port=taken.port)
    command = [sys.executable, "-m", "queenspark", "serve"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2
    assert str(taken.port) in ended.stderr
    assert "Traceback" not in ended.stderr


def test_migrate_can_be_repeated(command: Command, database: str) -> None:
    assert command("migrate", "--database-url", database).code == 0
    assert command("migrate", "--database-url", database).err == "The schema is up to date.\n"


def test_migrate_without_a_reachable_database_fails_with_one_sentence(command: Command) -> None:
    result = command("migrate", "--database-url", f"postgresql://127.0.0.1:{free_port()}/none")
    assert result.code == 1
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2%zz@127.0.0.1:1/db",
        "postgresql://me:hunter2@[::1/db",
        "me:hunter2@127.0.0.1/db",
        "postgresql://me:hunter2@127.0.0.1:1/db?sslmod=require",
    ],
)
@pytest.mark.parametrize("arguments", [("migrate",), ("keys", "list", "--direct")], ids=" ".join)
def test_an_invalid_database_url_is_one_sentence_without_its_password(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], url: str
) -> None:
    monkeypatch.setenv("QUEENSPARK_DATABASE_URL", url)
    result = command(*arguments)
    assert result.code == 1
    assert result.err.startswith("QUEENSPARK_DATABASE_URL is not a valid")
    assert "hunter2" not in result.err
