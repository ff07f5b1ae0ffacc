"""Late and dead records of a stream or job, as a tab with pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Literal

from ..components import Table, link
from ..parts import PAGE_ROWS, Pager, panel, queue_url
from ..tabs import Show, Tab
from ..words import ago, clock

Kind = Literal["late", "dead"]
Read = Callable[[int, int], Awaitable[list[dict[str, Any]]]]
"""Returns up to `limit` records from `offset` on, newest first."""


class Records:
    """The records of one kind. `refresh` is called when the user turns a page."""

    def __init__(
        self, kind: Kind, key: tuple[Hashable, ...], read: Read, refresh: Callable[[], Awaitable[None]]
    ) -> None:
        self._kind = kind
        self._key = (*key, kind)
        self._read = read
        self._refresh = refresh
        self._pager: Pager | None = None

    @property
    def tab(self) -> Tab:
        """The tab of these records."""
        return Tab(f"{self._kind.capitalize()} records", self._page_key, self._fetch, self._build)

    def _page_key(self) -> tuple[Hashable, ...]:
        return (*self._key, 0 if self._pager is None else self._pager.offset)

    async def _fetch(self, key: tuple[Any, ...]) -> list[dict[str, Any]]:
        return await self._read(PAGE_ROWS + 1, key[-1])

    def _build(self) -> Show:
        columns = [
            {"name": "key", "label": "Key"},
            {"name": "seen", "label": "Seen", "align": "right"},
            {"name": "queue", "label": "Queue"},
            {
                "name": "what",
                "label": "Time and window" if self._kind == "late" else "Reason",
                "class": "wrap",
            },
        ]
        with panel(flush=True):
            table = Table(columns, empty=f"No {self._kind} records.")
            pager = self._pager = Pager(self._refresh)
        explain = _late if self._kind == "late" else _dead

        def show(records: list[dict[str, Any]]) -> None:
            pager.show(len(records))
            table.show(
                [
                    {**_row(number, record), "what": explain(record)}
                    for number, record in enumerate(records[:PAGE_ROWS])
                ]
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
    outcome = "dropped" if record["dropped"] else "produced a new revision"
    return (
        f"{clock(record['time'])}, after windows up to {clock(record['closedUpTo'])} were closed: {outcome}"
    )


def _dead(record: dict[str, Any]) -> str:
    return record["reason"] or "no valid event time"
