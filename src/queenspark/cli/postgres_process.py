"""The PostgreSQL of `queenspark up`."""

import re
from pathlib import Path

from queenspark.cli.log_tail import last_line, size_of
from queenspark.embedded import EmbeddedPostgres, EmbeddedPostgresError
from queenspark.settings import Settings

#: Maximum duration of a restart; most of it is crash recovery.
RECOVERY_SECONDS = 600.0


class PostgresProcess(EmbeddedPostgres):
    """The embedded PostgreSQL on the data folder of the settings."""

    name = "PostgreSQL"
    back = "up again"
    steady_seconds = 10.0

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.data_dir)
        self._failure = ""
        self._log_start = 0

    @property
    def log_file(self) -> Path:
        """Where it logs."""
        return self.data_dir.log_file

    def spawn(self) -> None:
        """Start the server, after a crash with recovery, and wait until it accepts connections."""
        self._failure = ""
        self._log_start = size_of(self.log_file)
        try:
            self.start(RECOVERY_SECONDS)
        except EmbeddedPostgresError as error:
            self._failure = str(error)

    def ready(self) -> bool:
        """Whether it accepts connections: `spawn` has waited for that."""
        return True

    def last_words(self) -> str:
        """Why it did not start, else the last line of its log without time and process."""
        line = last_line(self.log_file, self._log_start)
        return self._failure or re.sub(r"^.*?\b(?:LOG|FATAL|PANIC): +", "", line)
