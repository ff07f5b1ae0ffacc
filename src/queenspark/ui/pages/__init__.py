"""The pages, one module each."""

from __future__ import annotations

from . import audit, dead_letters, groups, jobs, keys, overview, queue, queues, sql, stream, streams, system


def register() -> None:
    """Register the routes of all pages."""
    for module in (
        overview, streams, stream, queues, queue, groups, dead_letters, jobs, sql, system, keys, audit,
    ):  # fmt: skip
        module.register()
