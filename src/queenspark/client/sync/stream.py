# Made from aio/stream.py by `make format`: change that file, not this one.
"""A stream: define, inspect, seek its groups, delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

from ...formats.definition import FIELDS, to_wire
from ..duration import Duration, lease_seconds, milliseconds
from ..errors import InvalidValue, NotFound
from ..times import as_time
from .session import Session

LatePolicy = Literal["process", "warn", "drop"]
TimelineState = Literal["open", "waiting", "leased", "acked", "retrying", "dead", "skipped", "late"]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The desired state of a stream. Each option returns a new object; `define` applies it."""

    _session: Session
    name: str
    namespace: str
    _definition: dict[str, Any] = field(default_factory=dict)

    def sources(self, queues: Sequence[str]) -> Self:
        """Set the source queues."""
        if isinstance(queues, str):
            raise InvalidValue(f"sources is {queues!r}: pass a list of queue names")
        return self._with(sources=list(queues))

    def partitioned(self, on: bool = True) -> Self:
        """Compute windows per partition name, or else one for all messages."""
        return self._with(partitioned=on)

    def ordered(self, on: bool = True) -> Self:
        """Whether a group gets the windows of a key in order (the default).

        With `ordered(False)` a group may hold up to 16 windows of a key at a time, in any order.
        """
        return self._with(ordered=on)

    def columns(self, **expressions: str) -> Self:
        """Name expressions that others can use, for instance `net="data.amount * 0.8"`; calls accumulate."""
        return self._with(columns={**self._definition.get("columns", {}), **expressions})

    def key(self, *expressions: str) -> Self:
        """Compute windows per value of these expressions, for instance `data.userId`, not per partition."""
        return self._with(key=list(expressions))

    def where(self, condition: str) -> Self:
        """Count only messages that satisfy this condition, for instance `data.amount > 0`."""
        return self._with(where=condition)

    def aggregate(self, **expressions: str) -> Self:
        """Compute aggregates for each window, for instance `total="sum(data.amount)"`; calls accumulate."""
        return self._with(aggregates={**self._definition.get("aggregates", {}), **expressions})

    def having(self, condition: str) -> Self:
        """Deliver only windows whose aggregates satisfy this condition, for instance `total > 10`."""
        return self._with(having=condition)

    def emit(self, when: Literal["final", "changes"]) -> Self:
        """Deliver a window once it is sealed (`final`, the default), or after each message (`changes`)."""
        return self._with(emit=when)

    def output(self, kind: Literal["windows", "rows"]) -> Self:
        """Emit windows with their messages (the default), or rows into the queue `namespace.name`."""
        return self._with(output=kind)

    def tumbling_time(self, duration: Duration) -> Self:
        """Consecutive windows of this duration."""
        return self._window("tumbling", duration=milliseconds("duration", duration))

    def sliding_time(self, duration: Duration, slide: Duration) -> Self:
        """Windows of this duration, one starting every `slide`."""
        return self._window(
            "sliding",
            duration=milliseconds("duration", duration),
            slide=milliseconds("slide", slide),
        )

    def session(self, gap: Duration) -> Self:
        """Windows that end after this long without a message of their key."""
        return self._window("session", gap=milliseconds("gap", gap))

    def count(self, size: int, slide: int | None = None) -> Self:
        """Windows of this many messages of a key, one starting every `slide` messages (default: `size`)."""
        return self._window("count", size=size, step=slide)

    def rows(self, size: int) -> Self:
        """A window with each message: the last `size` messages of its key."""
        return self._window("rows", size=size)

    def grace_period(self, duration: Duration) -> Self:
        """How long a window waits for late messages after its end (default: 30 s)."""
        return self._with(grace=milliseconds("grace_period", duration))

    def lease_timeout(self, duration: Duration) -> Self:
        """How long a consumer holds a window before it is redelivered (default: 60 s)."""
        lease_seconds("lease_timeout", duration)
        return self._with(lease=milliseconds("lease_timeout", duration))

    def window_retention(self, duration: Duration) -> Self:
        """How long sealed windows are kept, consumed or not (default: no limit)."""
        return self._with(retention=milliseconds("window_retention", duration))

    def event_time(self, path: str) -> Self:
        """Use the event time at this payload path, for instance `data.ts` (default: push time)."""
        return self._with(event_time=path)

    def late(self, policy: LatePolicy) -> Self:
        """The policy for messages after their window is sealed: `process` (default), `warn`, `drop`."""
        return self._with(late=policy)

    def idle_timeout(self, duration: Duration) -> Self:
        """With event time: close the windows of a key after this long without messages."""
        return self._with(idle=milliseconds("idle_timeout", duration))

    def emit_empty(self, on: bool = True) -> Self:
        """Deliver empty windows too."""
        return self._with(emit_empty=on)

    def start(self, where: Literal["earliest", "latest"] | datetime | str) -> Self:
        """Where a new stream starts in its queues: `earliest` (the default), `latest`, or a time."""
        return self._with(start=where if where in ("earliest", "latest") else as_time("start", where))

    def define(self, *, reset: bool = False) -> Self:
        """Create or redefine the stream. With `reset`, its history is recomputed."""
        if not self._definition.get("source_queue_names"):
            raise InvalidValue("sources is missing: stream(name).sources([queue, …])")
        body = {"name": self.name, "namespace": self.namespace, **self._definition, "reset": reset}
        self._session.call("POST", "stream", "define", body=body, repeatable=not reset)
        return self

    def seek(self, group: str, time: datetime | str) -> None:
        """Seek a group to a time: it gets all windows that end later, again if already consumed."""
        body = {
            "streamName": self.name,
            "namespace": self.namespace,
            "consumerGroup": group,
            "timestamp": as_time("time", time),
        }
        self._session.call("POST", "stream", "seek", body=body)

    def describe(self) -> dict[str, Any]:
        """Return its definition, progress and groups, as the broker shows them."""
        shown: dict[str, Any] = self._get()
        return shown

    def active_windows(
        self,
        *,
        group: str | None = None,
        state: Literal["leased", "retrying", "waiting", "dead"] | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[dict[str, Any]]:
        """List windows that a group (or any group) has not acked, with their state."""
        query = {"consumerGroup": group, "state": state, "limit": limit, "offset": offset}
        found: list[dict[str, Any]] = (self._get("windows", **query))["windows"]
        return found

    def timeline(
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
        """Return the windows that end between two times, with their state in each group.

        The default is the last 15 minutes. Select one `key`, keys that contain `search`, or the busiest keys:
        `limit` keys and the newest `windows` of each. Unsealed windows are under `open`.
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
        found: dict[str, Any] = self._get("timeline", **query)
        return found

    def keys(self, *, search: str | None = None, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """List its keys, or those that contain `search`; keys with the most recent windows first."""
        query = {"search": search, "limit": limit, "offset": offset}
        found: list[dict[str, Any]] = (self._get("keys", **query))["keys"]
        return found

    def window(
        self, partition_id: str, transaction_id: str, *, limit: int = 20, cursor: str | None = None
    ) -> dict[str, Any]:
        """Return a window of the timeline with a page of its messages; `nextCursor` is the next page."""
        query = {"limit": limit, "cursor": cursor}
        found: dict[str, Any] = self._get("windows", partition_id, transaction_id, **query)
        return found

    def versions(self) -> list[dict[str, Any]]:
        """List the definitions of all versions, newest first."""
        found: list[dict[str, Any]] = (self._get("versions"))["versions"]
        return found

    def late_messages(self, *, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """List late messages that were logged or dropped, newest first."""
        found: list[dict[str, Any]] = (self._get("late", limit=limit, offset=offset))["late"]
        return found

    def dead_messages(self, *, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """List unreadable messages and windows that could not be computed, newest first."""
        found: list[dict[str, Any]] = (self._get("dead", limit=limit, offset=offset))["dead"]
        return found

    def delete(self) -> bool:
        """Delete the stream and its windows; return whether it existed."""
        query = {"namespace": self.namespace}
        try:
            response = self._session.call("DELETE", "resources", "streams", self.name, query=query)
        except NotFound:
            return False
        return bool(response["existed"])

    def _get(self, *more: str, **query: Any) -> Any:
        where = ("resources", "streams", self.name, *more)
        return self._session.call("GET", *where, query={"namespace": self.namespace, **query})

    def _with(self, **more: Any) -> Self:
        return replace(self, _definition={**self._definition, **to_wire(more)})

    def _window(self, kind: str, **sizes: Any) -> Self:
        kept = {name: value for name, value in self._definition.items() if name not in _SIZES}
        return replace(self, _definition={**kept, **to_wire({"kind": kind, **sizes})})


_SIZES = {field.wire for field in FIELDS.values() if field.is_size}
