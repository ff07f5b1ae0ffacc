"""The server process: create, start, stop, kill."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from queenspark.embedded.binaries import packaged_bin_dir
from queenspark.embedded.data_dir import DataDir
from queenspark.embedded.errors import EmbeddedPostgresError
from queenspark.embedded.orphans import end_orphans
from queenspark.embedded.system_user import SystemUser, choose_system_user
from queenspark.signals import signals_wait

PORT = 5432
SUPERUSER = "postgres"
READY_LINE = 7  # of postmaster.pid, counted from 0

OPTIONS = {
    "max_connections": "100",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "wal_compression": "on",
    "checkpoint_timeout": "15min",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}


class EmbeddedPostgres:
    """A PostgreSQL server on `data_dir`, created on first use.

    `bin_dir` replaces the packaged programs, `options` adds or overrides server settings.
    """

    def __init__(
        self, data_dir: Path, *, bin_dir: Path | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        self.data_dir = DataDir(data_dir)
        self._bin_dir = bin_dir
        self._options = {**OPTIONS, **(options or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The libpq URL of the server's default database."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The libpq URL of any database of this server."""
        host = quote(str(self.data_dir.socket_dir), safe="")
        return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={host}&port={PORT}"

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        if self._process is None:
            raise EmbeddedPostgresError("The embedded PostgreSQL is not started.")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the postmaster is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the ended postmaster; negative after a signal."""
        return None if self._process is None else self._process.poll()

    def start(self, within: float = 60.0) -> None:
        """Start the server and wait until it accepts connections, including crash recovery."""
        if self.running:
            return
        deadline = time.monotonic() + within
        bin_dir = self._bin_dir or packaged_bin_dir()
        self.data_dir.take()
        try:
            user = choose_system_user(self.data_dir.cluster)
            user.open_the_way_to(bin_dir, self.data_dir.path)
            user.open_installation(bin_dir)
            user.own_directory(self.data_dir.socket_dir)
            self._make_cluster(bin_dir, user)
            self._stop_orphan(bin_dir, deadline)
            while not self._launch(bin_dir, user, deadline):
                time.sleep(0.1)
        except BaseException:
            self.stop()
            raise

    def stop(self, within: float = 60.0) -> None:
        """Stop the server: cleanly, or after `within` seconds by force. Releases the data folder."""
        process = self._process
        if process is not None:
            # fast shutdown, immediate shutdown, kill
            for how, patience in ((signal.SIGINT, within), (signal.SIGQUIT, 5.0), (signal.SIGKILL, None)):
                if process.poll() is None:
                    process.send_signal(how)
                try:
                    process.wait(patience)
                    break
                except subprocess.TimeoutExpired:
                    continue
        self._process = None
        self.data_dir.release()

    def kill(self) -> None:
        """Kill the postmaster, as a crash would; `start` recovers."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _make_cluster(self, bin_dir: Path, user: SystemUser) -> None:
        if self.data_dir.cluster.exists():
            return
        # Created aside and renamed, so that a killed initdb leaves no half-made cluster.
        unfinished = self.data_dir.unfinished_cluster
        shutil.rmtree(unfinished, ignore_errors=True)
        user.own_directory(unfinished)
        command = [str(bin_dir / "initdb"), "-D", str(unfinished), "-U", SUPERUSER, "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--data-checksums", "--no-instructions"]
        with ExitStack() as started:
            with signals_wait():
                initdb = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    text=True, errors="replace", start_new_session=True, cwd="/", env=_environment(),
                    **user.popen_arguments,
                )  # fmt: skip
                started.callback(_end_all_of, initdb)
            _, said = initdb.communicate()
            started.pop_all()
        if initdb.returncode != 0:
            raise EmbeddedPostgresError(f"initdb failed: {_reason(said)}")
        unfinished.rename(self.data_dir.cluster)

    def _stop_orphan(self, bin_dir: Path, deadline: float) -> None:
        """Stop the server of a killed owner; ignore a process id that was reused."""
        lines = self.data_dir.postmaster()
        if lines and _alive(int(lines[0])):
            if self._responds(bin_dir):
                os.kill(int(lines[0]), signal.SIGINT)
                while self.data_dir.pid_file.exists():
                    if time.monotonic() > deadline:
                        raise EmbeddedPostgresError(
                            f"The PostgreSQL of an earlier run (process {lines[0]}) did not stop: "
                            f"stop that process (kill {lines[0]}), then start again."
                        )
                    time.sleep(0.02)
            else:
                self.data_dir.pid_file.unlink(missing_ok=True)
        for leftover in self.data_dir.socket_dir.iterdir():
            leftover.unlink()

    def _responds(self, bin_dir: Path) -> bool:
        """Whether a server listens on our socket: accepting (0), starting or stopping (1), none (2)."""
        probe = [str(bin_dir / "pg_isready"), "-q", "-t", "30", "-h", str(self.data_dir.socket_dir)]
        probe += ["-p", str(PORT)]
        return subprocess.run(probe, check=False, env=_environment()).returncode < 2

    def _launch(self, bin_dir: Path, user: SystemUser, deadline: float) -> bool:
        """Run the server until it is ready; return False to retry."""
        command = [str(bin_dir / "postgres"), "-D", str(self.data_dir.cluster), "-p", str(PORT)]
        command += ["-k", str(self.data_dir.socket_dir), "-c", "listen_addresses="]
        for name, value in self._options.items():
            command += ["-c", f"{name}={value}"]
        with self.data_dir.log_file.open("ab") as log:
            log_start = log.tell()
            # A new session: Ctrl-C in a terminal reaches only our process, which stops everything in order.
            with signals_wait():
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                    env=_environment(), **user.popen_arguments,
                )  # fmt: skip
        while self.running:
            lines = self.data_dir.postmaster()
            if len(lines) > READY_LINE and lines[0] == str(self.pid) and lines[READY_LINE].strip() == "ready":
                return True
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"PostgreSQL did not become ready; check its log: {self.data_dir.log_file}"
                )
            time.sleep(0.02)
        said = self.data_dir.log_file.read_bytes()[log_start:].decode(errors="replace")
        # The backends of a killed postmaster still hold its shared memory.
        if "shared memory block" in said and time.monotonic() < deadline:
            end_orphans(self.data_dir.cluster)
            return False
        raise EmbeddedPostgresError(
            f"PostgreSQL did not start: {_reason(said)} (log: {self.data_dir.log_file})"
        )


def _end_all_of(process: subprocess.Popen[str]) -> None:
    """End a process and its children, which hold its stderr: nothing writes files after that."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stderr is not None and not process.stderr.closed:
        process.stderr.read()
    process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _reason(said: str) -> str:
    """Extract the error line from a program's output."""
    lines = [line for line in said.splitlines() if line.strip()]
    for line in lines:
        for mark in ("FATAL:", "error:", "PANIC:"):
            if mark in line:
                return line.split(mark, 1)[1].strip()
    return lines[-1].strip() if lines else "no error message"
