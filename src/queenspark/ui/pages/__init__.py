"""The pages, one file each."""

from __future__ import annotations

from . import audit, dead_letters, groups, jobs, keys, overview, queue, queues, sql, stream, streams, system


def register() -> None:
    """Give every page its path."""
    for module in (
        overview, streams, stream, queues, queue, groups, dead_letters, jobs, sql, system, keys, audit,
    ):  # fmt: skip
        module.register()
