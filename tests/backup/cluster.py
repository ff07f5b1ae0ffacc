"""PostgreSQL clusters that can be copied, recovered and promoted."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from queenspark.embedded.binaries import packaged_bin_dir
from queenspark.embedded.system_user import SystemUser, choose_system_user

PORT = "5432"
SUPERUSER = "postgres"


class Cluster:
    """A server in its own folder; `programs` is the `bin` folder of a PostgreSQL version."""

    def __init__(self, programs: Path | None = None) -> None:
        self.programs = programs or packaged_bin_dir()
        # Not below pytest's temporary folder: pytest repeatedly revokes other users' access to it.
        self.folder = Path(tempfile.mkdtemp(prefix="queenspark-test-"))
        self.data = self.folder / "data"
        self.user: SystemUser = choose_system_user(self.data)
        self.user.own_directory(self.folder)
        self.user.open_the_way_to(self.folder, self.programs)
        self.user.open_installation(self.programs)
        self._options: dict[str, str] = {}

    @property
    def url(self) -> str:
        """The connection URL of the server's database."""
        return f"postgresql://{SUPERUSER}@/postgres?host={quote(str(self.folder), safe='')}&port={PORT}"

    def run(self, program: str, *arguments: str) -> str:
        """Run one of the programs as the server's user; return its output."""
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            capture_output=True, text=True, cwd="/", env={**os.environ, "LC_ALL": "C"}, check=False,
            timeout=120, **self.user.popen_arguments,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stderr}{done.stdout}"
        return done.stdout

    def make(self) -> None:
        """Create an empty cluster."""
        self.run("initdb", "-D", str(self.data), "-U", SUPERUSER, "--auth=trust", "--locale=C", "-E", "UTF8")

    def copy(self, source: "Cluster", *arguments: str) -> None:
        """Take a base backup of a running server."""
        host = ("-h", str(source.folder), "-p", PORT, "-U", SUPERUSER)
        self.run("pg_basebackup", *host, "-D", str(self.data), "--checkpoint=fast", *arguments)

    def start(self, options: Mapping[str, str] | None = None) -> None:
        """Start it and wait until it accepts connections."""
        self._options |= options or {}
        chosen = {"listen_addresses": "", "unix_socket_directories": str(self.folder), **self._options}
        settings = " ".join(f"-c {name}='{value}'" for name, value in chosen.items())
        # With -l the server does not inherit our pipes; otherwise `run` would wait for it to exit.
        self.run(
            "pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-o", settings, "start"
        )

    def promote(self) -> None:
        """Promote a replica."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def stop(self, how: str = "fast") -> None:
        """Stop it; `immediate` simulates a crash."""
        if (self.data / "postmaster.pid").exists():
            self.run("pg_ctl", "-D", str(self.data), "-m", how, "-w", "stop")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop("immediate")
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)
