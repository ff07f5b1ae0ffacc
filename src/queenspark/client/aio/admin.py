"""Looking at a whole system, and looking after it."""

from __future__ import annotations

from typing import Any

from .session import AsyncSession

_PAGE = 1000  # rows that are read at a time


class AsyncAdmin:
    """What concerns no single queue or stream. Answers are the broker's own, as in the HTTP API."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def status(self) -> dict[str, Any]:
        """Everything at a glance."""
        return await self._get("status")

    async def queues(
        self, *, namespace: str | None = None, task: str | None = None, windows: bool = False
    ) -> list[dict[str, Any]]:
        """All queues with their counts; with `windows` also the window queues of streams."""
        query = {"namespace": namespace, "task": task, "windows": "true" if windows else None}
        return await self._list("queues", "resources", "queues", query=query)

    async def streams(self, *, namespace: str | None = None) -> list[dict[str, Any]]:
        """All streams with their progress."""
        return await self._list("streams", "resources", "streams", query={"namespace": namespace})

    async def stream_stats(self) -> dict[str, Any]:
        """Counts over all streams, and the pipeline."""
        return await self._get("resources", "streams", "stats")

    async def series(self, *, seconds: int = 900) -> list[dict[str, Any]]:
        """Rates and gauges over all brokers, in steps of five seconds, the oldest first; up to an hour."""
        answer = await self._session.call("GET", "series", query={"seconds": seconds})
        found: list[dict[str, Any]] = answer["series"]
        return found

    async def attention(self) -> list[dict[str, Any]]:
        """What somebody should look at, in words, the worst first."""
        found: list[dict[str, Any]] = (await self._get("attention"))["attention"]
        return found

    async def system(self) -> dict[str, Any]:
        """Brokers, pipelines, PostgreSQL, and the settings of the broker that answers."""
        return await self._get("system")

    async def request(
        self, method: str, *path: str, query: dict[str, Any] | None = None, body: Any = None
    ) -> Any:
        """The answer of any route below /api/v1, as decoded JSON: `request("GET", "jobs", name)`.

        A GET is repeated when it may succeed then, everything else only when it certainly did not arrive.
        """
        return await self._session.call(method, *path, query=query, body=body, repeatable=method == "GET")

    async def groups(self) -> list[dict[str, Any]]:
        """All consumer groups, an entry for each queue of a group, with their lag."""
        return await self._list("consumerGroups", "consumer-groups")

    async def delete_group(self, group: str, *, queue: str | None = None) -> int:
        """Delete a group, on all queues or on one. How many entries there were."""
        place = [] if queue is None else ["queues", queue]
        answer = await self._session.call("DELETE", "consumer-groups", group, *place)
        return int(answer["count"])

    async def push_maintenance(self, on: bool) -> None:
        """Switch push maintenance: pushes are accepted, and appended to the log when it ends."""
        await self._session.call("POST", "system", "maintenance", body={"enabled": on})

    async def pop_maintenance(self, on: bool) -> None:
        """Switch pop maintenance: nothing is handed out."""
        await self._session.call("POST", "system", "maintenance", "pop", body={"enabled": on})

    async def _get(self, *path: str) -> dict[str, Any]:
        answer: dict[str, Any] = await self._session.call("GET", *path)
        return answer

    async def _list(self, name: str, *path: str, query: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """All pages of a list."""
        found: list[dict[str, Any]] = []
        while True:
            page = {**(query or {}), "limit": _PAGE, "offset": len(found)}
            answer = await self._session.call("GET", *path, query=page)
            rows: list[dict[str, Any]] = answer[name]
            found += rows
            if not rows or len(found) >= answer.get("total", 0):
                return found
