"""Exit codes, and the failures that end a command with one sentence instead of a stack trace."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of commands."""

    OK = 0
    REFUSED = 1  # the broker said no, or something failed
    USAGE = 2  # the command was not understood, or the system cannot start like this
    NOTHING = 3  # there is nothing to show
    UNREACHABLE = 4  # no broker reachable
    PARTLY = 5  # done, except for lines that were skipped


class Failure(Exception):
    """Ends the command: `message` goes to stderr, `code` is the exit code."""

    def __init__(self, message: str, code: Exit = Exit.REFUSED) -> None:
        super().__init__(message)
        self.code = code
