"""Inspection of processes for the tests."""

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


def program_of(pid: int) -> str:
    """The name of the program that a process runs; nothing when it is gone."""
    return _text(pid, "comm").strip()


def arguments_of(pid: int) -> list[str]:
    """The command line of a process; empty if it is gone."""
    return _text(pid, "cmdline").split("\0")


def members(session: int) -> list[int]:
    """The living processes of a session, with any parent."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _fields(pid)[3:4] == [str(session)] and not gone(pid)]


def _fields(pid: int) -> list[str]:
    """State, parent and so on, as proc(5) has them after the name; nothing when it is gone."""
    return _text(pid, "stat").rpartition(")")[2].split()


def _text(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
