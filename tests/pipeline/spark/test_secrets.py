"""Secrets for Spark's workers: in files that end with their process, however it ends."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from queenspark.pipeline.spark import secrets
from queenspark.pipeline.spark.secrets import Secrets, reveal, seal

SEALING = """
import sys
from queenspark.pipeline.spark.secrets import Secrets, seal
print(seal(Secrets("postgresql://secret")), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files, in a process that has sealed nothing yet."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    secrets._folder.cache_clear()
    yield tmp_path
    secrets._folder.cache_clear()


def start() -> tuple["subprocess.Popen[str]", Path]:
    """A process that has sealed a secret, and its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", SEALING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip().removeprefix("secret:")).parent


def end(process: "subprocess.Popen[str]", number: signal.Signals | None = None) -> None:
    if number is not None:
        process.send_signal(number)
    process.communicate(timeout=30)


def test_secrets_of_a_process_end_with_it(folder: Path) -> None:
    process, its = start()
    assert its.parent == folder
    assert its.stat().st_mode & 0o777 == 0o700
    end(process)
    assert not its.exists()


def test_secrets_of_a_killed_process_are_removed_at_the_next_start(folder: Path) -> None:
    (killed, left), (alive, its) = start(), start()
    end(killed, signal.SIGKILL)
    assert list(left.iterdir())
    reference = seal(Secrets("postgresql://mine"))
    assert not left.exists()
    assert list(its.iterdir()), "the secrets of a live process stay"
    assert reveal(reference).url == "postgresql://mine"
    end(alive)


def test_other_folders_are_left_alone(folder: Path) -> None:
    empty, link = folder / f"{secrets._PREFIX}empty", folder / f"{secrets._PREFIX}link"
    other = folder / "queenspark-secrets-of-an-earlier-version"
    for each in (empty, other):
        each.mkdir()
    (other / "secret").touch()
    os.symlink(other, link)
    seal(Secrets("postgresql://mine"))
    assert empty.exists()
    assert list(link.iterdir())
