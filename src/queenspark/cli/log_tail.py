"""The end of a log file."""

from pathlib import Path

TAIL_BYTES = 64 * 1024


def size_of(log_file: Path) -> int:
    """How long the log is; 0 when there is none yet."""
    return log_file.stat().st_size if log_file.exists() else 0


def last_line(log_file: Path, since: int = 0) -> str:
    """The last line that was logged after the first `since` bytes; empty when there is none."""
    size = size_of(log_file)
    if size <= since:
        return ""
    with log_file.open("rb") as log:
        log.seek(max(since, size - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
