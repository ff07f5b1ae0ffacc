"""The statements that were typed, kept for the next time."""

import os
import re
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

_SECRET = re.compile(
    r"password|passwd|secret|token|credential|sasl|api_?key|access_?key|private_?key", re.IGNORECASE
)


class SqlHistory(FileHistory):
    """Keeps statements in a file, but those that may have a secret only until the prompt ends."""

    def store_string(self, string: str) -> None:
        """Write a statement to the file."""
        if not _SECRET.search(string):
            super().store_string(string)


def history() -> History:
    """The history in the user's state folder, which only they can read; without one, that of this prompt."""
    try:
        folder = _state_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "sql_history"
        file.touch(mode=0o600)
        with file.open("ab"):
            return SqlHistory(str(file))
    except (OSError, RuntimeError):
        return InMemoryHistory()


def _state_folder() -> Path:
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state") / "queenspark"
