"""The statements that were typed, kept for the next time."""

import re

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from queenspark.cli.state_folder import state_folder

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
        file = state_folder() / "sql_history"
        file.touch(mode=0o600)
        with file.open("ab"):
            return SqlHistory(str(file))
    except (OSError, RuntimeError):
        return InMemoryHistory()
