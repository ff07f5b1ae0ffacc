# Made from aio/admin.py by `make format`: change that file, not this one.
"""Monitoring and administration of a whole system."""

from __future__ import annotations

from typing import Any

from .session import Session

_PAGE = 1000  # rows per request


class Admin:
    """Operations on the system as a whole. Results are the broker's own, as in the HTTP API."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def status(self) -> dict[str, Any]:
        """Return a summary of the system."""
        return self._get("status")

    def queues(
        self, *, namespace: str | None = None, task: str | None = None, windows: bool = False
    ) -> list[dict[str, Any]]:
        """List all queues with their counts; with `windows` also the window queues of streams."""
        query = {"namespace": namespace, "task": task, "windows": "true" if windows else None}
        return self._list("queues", "resources", "queues", query=query)

    def streams(self, *, namespace: str | None = None) -> list[dict[str, Any]]:
        """List all streams with their progress."""
        return self._list("streams", "resources", "streams", query={"namespace": namespace})

    def stream_stats(self) -> dict[str, Any]:
        """Return counts over all streams, and the state of the pipeline."""
        return self._get("resources", "streams", "stats")

    def series(self, *, seconds: int = 900) -> list[dict[str, Any]]:
        """Return rates and gauges over all brokers, in five-second steps, oldest first; up to an hour."""
        response = self._session.call("GET", "series", query={"seconds": seconds})
        found: list[dict[str, Any]] = response["series"]
        return found

    def attention(self) -> list[dict[str, Any]]:
        """List problems that need attention, as text, worst first."""
        found: list[dict[str, Any]] = (self._get("attention"))["attention"]
        return found

    def system(self) -> dict[str, Any]:
        """Return brokers, pipelines, PostgreSQL, and the settings of the broker that responds."""
        return self._get("system")

    def request(self, method: str, *path: str, query: dict[str, Any] | None = None, body: Any = None) -> Any:
        """Call any route below /api/v1 and return the decoded JSON: `request("GET", "jobs", name)`.

        A GET is retried on transient errors, other methods only when the request certainly did not arrive.
        """
        return self._session.call(method, *path, query=query, body=body, repeatable=method == "GET")

    def groups(self) -> list[dict[str, Any]]:
        """List all consumer groups, one entry per queue of a group, with their lag."""
        return self._list("consumerGroups", "consumer-groups")

    def delete_group(self, group: str, *, queue: str | None = None) -> int:
        """Delete a group, on one queue or on all; return the number of entries deleted."""
        path = [] if queue is None else ["queues", queue]
        response = self._session.call("DELETE", "consumer-groups", group, *path)
        return int(response["count"])

    def push_maintenance(self, on: bool) -> None:
        """Turn push maintenance on or off: pushes are accepted and appended to the log when it ends."""
        self._session.call("POST", "system", "maintenance", body={"enabled": on})

    def pop_maintenance(self, on: bool) -> None:
        """Turn pop maintenance on or off: pops and polls return nothing."""
        self._session.call("POST", "system", "maintenance", "pop", body={"enabled": on})

    def _get(self, *path: str) -> dict[str, Any]:
        response: dict[str, Any] = self._session.call("GET", *path)
        return response

    def _list(self, name: str, *path: str, query: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Fetch all pages of a list."""
        found: list[dict[str, Any]] = []
        while True:
            page = {**(query or {}), "limit": _PAGE, "offset": len(found)}
            response = self._session.call("GET", *path, query=page)
            rows: list[dict[str, Any]] = response[name]
            found += rows
            if not rows or len(found) >= response.get("total", 0):
                return found
