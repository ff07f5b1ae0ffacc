"""A stream: define it, look at it, move its groups, delete it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

from ...formats.definition import FIELDS, to_wire
from ..duration import Duration, lease_seconds, milliseconds
from ..errors import InvalidValue, NotFound
from ..times import as_time
from .session import AsyncSession

LatePolicy = Literal["process", "warn", "drop"]
TimelineState = Literal["open", "waiting", "leased", "acked", "retrying", "dead", "skipped", "late"]


@dataclass(frozen=True, kw_only=True)
class AsyncStream:
    """A stream as it should be. Each setting gives a new object; `define` makes it so."""

    _session: AsyncSession
    name: str
    namespace: str
    _definition: dict[str, Any] = field(default_factory=dict)

    def sources(self, queues: Sequence[str]) -> Self:
        """The queues that it joins."""
        if isinstance(queues, str):
            raise InvalidValue(f"sources is {queues!r}: give a list of queues")
        return self._with(sources=list(queues))

    def partitioned(self, on: bool = True) -> Self:
        """Windows for each partition name by itself; else one for all messages together."""
        return self._with(partitioned=on)

    def ordered(self, on: bool = True) -> Self:
        """Whether a group gets the windows of a key one after the other (the default).

        With `ordered(False)` it may have up to 16 windows of a key at a time, in any order.
        """
        return self._with(ordered=on)

    def key(self, *expressions: str) -> Self:
        """Windows for each value of these expressions, such as `data.userId`, in place of the partition."""
        return self._with(key=list(expressions))

    def where(self, condition: str) -> Self:
        """Count only messages for which this is true, such as `data.amount > 0`."""
        return self._with(where=condition)

    def aggregate(self, **expressions: str) -> Self:
        """Compute these for each window, such as `total="sum(data.amount)"`; more calls add more."""
        return self._with(aggregates={**self._definition.get("aggregates", {}), **expressions})

    def having(self, condition: str) -> Self:
        """Deliver only windows for which this is true of the aggregates, such as `total > 10`."""
        return self._with(having=condition)

    def emit(self, when: Literal["final", "changes"]) -> Self:
        """Deliver a window once it is sealed (`final`, the default), or after each message (`changes`)."""
        return self._with(emit=when)

    def tumbling_time(self, duration: Duration) -> Self:
        """Windows of this length, one after the other."""
        return self._window("tumbling", duration=milliseconds("duration", duration))

    def sliding_time(self, duration: Duration, slide: Duration) -> Self:
        """Windows of this length, a new one every `slide`."""
        return self._window(
            "sliding",
            duration=milliseconds("duration", duration),
            slide=milliseconds("slide", slide),
        )

    def session(self, gap: Duration) -> Self:
        """Windows that end when a key was silent for this long."""
        return self._window("session", gap=milliseconds("gap", gap))

    def count(self, size: int, slide: int | None = None) -> Self:
        """Windows of so many messages of a key, a new one every `slide` messages (default: `size`)."""
        return self._window("count", size=size, step=slide)

    def rows(self, size: int) -> Self:
        """With each message a window of the last messages of its key, so many of them."""
        return self._window("rows", size=size)

    def grace_period(self, duration: Duration) -> Self:
        """How long after its end a window waits for late messages (default: 30 s)."""
        return self._with(grace=milliseconds("grace_period", duration))

    def lease_timeout(self, duration: Duration) -> Self:
        """How long a consumer has a window before it goes to another (default: 60 s)."""
        lease_seconds("lease_timeout", duration)
        return self._with(lease=milliseconds("lease_timeout", duration))

    def window_retention(self, duration: Duration) -> Self:
        """How long sealed windows are kept, delivered or not (default: no limit)."""
        return self._with(retention=milliseconds("window_retention", duration))

    def event_time(self, path: str) -> Self:
        """Cut by the time at this path of the payload, such as `data.ts`, not by the time of the push."""
        return self._with(event_time=path)

    def late(self, policy: LatePolicy) -> Self:
        """What happens to messages that come after their window: `process` (default), `warn`, `drop`."""
        return self._with(late=policy)

    def idle_timeout(self, duration: Duration) -> Self:
        """With event time: how long a key is silent before its windows close."""
        return self._with(idle=milliseconds("idle_timeout", duration))

    def emit_empty(self, on: bool = True) -> Self:
        """Deliver windows without messages too."""
        return self._with(emit_empty=on)

    def start(self, where: Literal["earliest", "latest"] | datetime | str) -> Self:
        """Where a new stream begins in its queues: `earliest` (the default), `latest`, or a time."""
        return self._with(start=where if where in ("earliest", "latest") else as_time("start", where))

    async def define(self, *, reset: bool = False) -> Self:
        """Create the stream, or redefine it. With `reset`, history is windowed again."""
        if not self._definition.get("source_queue_names"):
            raise InvalidValue("sources is missing: stream(name).sources([queue, …])")
        body = {"name": self.name, "namespace": self.namespace, **self._definition, "reset": reset}
        await self._session.call("POST", "stream", "define", body=body, repeatable=not reset)
        return self

    async def seek(self, group: str, time: datetime | str) -> None:
        """Move a group: it gets the windows that end after this time, again or for the first time."""
        body = {
            "streamName": self.name,
            "namespace": self.namespace,
            "consumerGroup": group,
            "timestamp": as_time("time", time),
        }
        await self._session.call("POST", "stream", "seek", body=body)

    async def describe(self) -> dict[str, Any]:
        """Its definition, progress and groups, as the broker shows them."""
        shown: dict[str, Any] = await self._get()
        return shown

    async def active_windows(
        self,
        *,
        group: str | None = None,
        state: Literal["leased", "retrying", "waiting", "dead"] | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[dict[str, Any]]:
        """Windows that a group (or any group) has not answered, with their state."""
        query = {"consumerGroup": group, "state": state, "limit": limit, "offset": offset}
        found: list[dict[str, Any]] = (await self._get("windows", **query))["windows"]
        return found

    async def timeline(
        self,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        key: str | None = None,
        search: str | None = None,
        group: str | None = None,
        state: TimelineState | None = None,
        limit: int = 30,
        offset: int = 0,
        windows: int = 200,
    ) -> dict[str, Any]:
        """Windows that end between two times (default: the last 15 minutes), with their state in each group.

        They are those of one `key`, of keys that contain `search`, or of the busiest keys: `limit` keys and
        the newest `windows` of each. Windows that are not sealed yet are under `open`.
        """
        query = {
            "from": None if since is None else as_time("since", since),
            "to": None if until is None else as_time("until", until),
            "key": key,
            "search": search,
            "consumerGroup": group,
            "state": state,
            "limit": limit,
            "offset": offset,
            "windows": windows,
        }
        found: dict[str, Any] = await self._get("timeline", **query)
        return found

    async def keys(
        self, *, search: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Its keys, those with the most of the newest windows first; or those that contain `search`."""
        query = {"search": search, "limit": limit, "offset": offset}
        found: list[dict[str, Any]] = (await self._get("keys", **query))["keys"]
        return found

    async def window(
        self, partition_id: str, transaction_id: str, *, limit: int = 20, cursor: str | None = None
    ) -> dict[str, Any]:
        """A window of the timeline with a page of its messages; `nextCursor` leads to the next page."""
        query = {"limit": limit, "cursor": cursor}
        found: dict[str, Any] = await self._get("windows", partition_id, transaction_id, **query)
        return found

    async def versions(self) -> list[dict[str, Any]]:
        """The definitions of its versions, the newest first."""
        found: list[dict[str, Any]] = (await self._get("versions"))["versions"]
        return found

    async def late_messages(self, *, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """Messages that came late and were logged or dropped, the newest first."""
        found: list[dict[str, Any]] = (await self._get("late", limit=limit, offset=offset))["late"]
        return found

    async def dead_messages(self, *, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """Messages that could not be read, and windows that could not be computed, the newest first."""
        found: list[dict[str, Any]] = (await self._get("dead", limit=limit, offset=offset))["dead"]
        return found

    async def delete(self) -> bool:
        """Delete it with its windows; whether it was there."""
        query = {"namespace": self.namespace}
        try:
            answer = await self._session.call("DELETE", "resources", "streams", self.name, query=query)
        except NotFound:
            return False
        return bool(answer["existed"])

    async def _get(self, *more: str, **query: Any) -> Any:
        where = ("resources", "streams", self.name, *more)
        return await self._session.call("GET", *where, query={"namespace": self.namespace, **query})

    def _with(self, **more: Any) -> Self:
        return replace(self, _definition={**self._definition, **to_wire(more)})

    def _window(self, kind: str, **sizes: Any) -> Self:
        kept = {name: value for name, value in self._definition.items() if name not in _SIZES}
        return replace(self, _definition={**kept, **to_wire({"kind": kind, **sizes})})


_SIZES = {field.wire for field in FIELDS.values() if field.is_size}
