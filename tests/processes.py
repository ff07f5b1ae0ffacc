"""Looking at processes, as far as the tests need it."""

from pathlib import Path


def gone(pid: int) -> bool:
    """Whether no living process has this id; a zombie that waits for its parent does not live."""
    return _fields(pid)[:1] in ([], ["Z"])


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(children.get(pid, []))
    for child in found:
        found += children.get(child, [])
    return found


def command(pid: int) -> list[str]:
    """What a process was called with."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def members(session: int) -> list[int]:
    """The living processes of a session, whoever has started them."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _fields(pid)[3:4] == [str(session)] and not gone(pid)]


def _fields(pid: int) -> list[str]:
    """State, parent and so on, as proc(5) has them after the name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
