"""Processor time of processes, read from /proc."""

import os
import resource
import time
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")
PARENT, USER, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM = 1, 11, 12, 13, 14
"""Fields of /proc/<pid>/stat after the command's name."""


class Cpu:
    """Cores used by the broker, PostgreSQL and this process with its children, within a `with` block."""

    def __init__(self, broker_pid: int, postgres_pid: int) -> None:
        self._roots = {"broker": broker_pid, "postgres": postgres_pid}
        self.cores: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._before = self._seconds()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = time.monotonic() - self._started
        after = self._seconds()
        self.cores = {name: round((after[name] - self._before[name]) / took, 2) for name in after}

    def _seconds(self) -> dict[str, float]:
        seconds = {name: tree_seconds(root) for name, root in self._roots.items()}
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds["generator"] = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        return seconds


def tree_seconds(root: int) -> float:
    """Processor seconds of a process, its descendants, and those of them that have ended."""
    stats = all_stats()
    ticks, todo = 0, [root]
    while todo:
        pid = todo.pop()
        fields = stats.get(pid)
        if fields is None:
            continue
        ticks += sum(int(fields[i]) for i in (USER, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM))
        todo += [child for child, its in stats.items() if int(its[PARENT]) == pid]
    return ticks / TICKS


def all_stats() -> dict[int, list[str]]:
    """The fields of every process's stat file, without its number and name."""
    stats = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            stats[int(folder.name)] = text[text.rindex(")") + 2 :].split()
    return stats
