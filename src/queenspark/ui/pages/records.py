"""Late and dead records of a stream or job, as a table of a tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ..components import Table, link
from ..parts import panel, queue_url
from ..words import ago, clock


def build(kind: Literal["late", "dead"]) -> Callable[[list[dict[str, Any]]], None]:
    """Make the table and return the function that fills it."""
    columns = [
        {"name": "key", "label": "Key"},
        {"name": "seen", "label": "Seen", "align": "right"},
        {"name": "queue", "label": "Queue"},
        {"name": "what", "label": "Time and window" if kind == "late" else "Reason", "class": "wrap"},
    ]
    with panel(flush=True):
        table = Table(columns, empty=f"No {kind} records.")
    explain = _late if kind == "late" else _dead

    def show(records: list[dict[str, Any]]) -> None:
        table.show(
            [{**_row(number, record), "what": explain(record)} for number, record in enumerate(records)]
        )

    return show


def _row(number: int, record: dict[str, Any]) -> dict[str, Any]:
    queue = record["queue"]
    return {
        "id": number,
        "key": record["key"],
        "seen": ago(record["seenAt"]),
        "queue": link(queue, queue_url(queue)) if queue else {"text": "deleted", "faint": True},
    }


def _late(record: dict[str, Any]) -> str:
    outcome = "dropped" if record["dropped"] else "made a new revision"
    return (
        f"{clock(record['time'])}, after windows up to {clock(record['closedUpTo'])} were closed: {outcome}"
    )


def _dead(record: dict[str, Any]) -> str:
    return record["reason"] or "no valid event time"
