"""Streams that compute, from their definition to polled windows, with the pipeline in this process."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx2

from queenspark.pipeline.streams import stream_source
from tests.horizon import wait_for_horizon
from tests.pipeline.streams.local import LocalPipeline
from tests.wire.api import Api, Json, responded
from tests.wire.document import Document

MINUTE_MS = 60_000


def at(second: float, **more: Any) -> Json:
    """A record with a time, this many seconds after noon."""
    return {**more, "at": 1_769_860_800_000 + round(second * 1000)}


class Computing:
    """One broker with a pipeline in this process; `begin` gives the stream and its queue a new name."""

    def __init__(self, url: str, database_url: str, key: bytes | None = None) -> None:
        stream_source.WAIT_SECONDS = 0.02
        self.api = Api(url, database_url)
        self.api.http.event_hooks = {"response": [Document(self.api.read("/openapi.json")).check]}
        self.database_url = database_url
        self.pipeline = LocalPipeline(database_url, encryption_key=key)
        self.begin()

    def begin(self) -> None:
        """Take names that no test has used."""
        tag = uuid4().hex[:8]
        self.stream, self.queue, self.other = f"s-{tag}", f"q-{tag}", f"r-{tag}"

    def forget(self) -> None:
        """Delete all streams, which the pipeline would go on computing with every batch."""
        for stream in self.api.read("/api/v1/resources/streams", limit=1000)["streams"]:
            path = f"/api/v1/resources/streams/{stream['name']}"
            responded(self.api.delete(path, namespace=stream["namespace"]), 200)

    def try_define(self, **fields: Any) -> httpx2.Response:
        given = {
            "name": self.stream, "namespace": "tests", "source_queue_names": [self.queue],
            "window_grace_period_ms": 0,
        }  # fmt: skip
        return self.api.post("/api/v1/stream/define", {**given, **fields})

    def define(self, **fields: Any) -> Json:
        """Define the stream; its queue has to be there."""
        return responded(self.try_define(**fields), 201)

    def refused(self, **fields: Any) -> str:
        """The error of a definition that must be refused."""
        return str(responded(self.try_define(**fields), 400)["error"])

    def push(self, *payloads: Any, partition: str = "p", queue: str | None = None) -> None:
        """Push records in one request."""
        self.api.push(queue or self.queue, *payloads, partition=partition)

    def drain(self) -> None:
        """Run the pipeline until it has read everything."""
        self.pipeline.drain()
        wait_for_horizon(self.database_url)

    def try_poll(self, group: str = "g", **more: Any) -> httpx2.Response:
        body = {"streamName": self.stream, "consumerGroup": group, "timeout": 0, **more}
        return self.api.post("/api/v1/stream/poll", body)

    def windows(self, group: str = "g", **more: Any) -> list[Json]:
        """All windows that a group gets now, acked, in the order in which they come."""
        self.drain()
        found: list[Json] = []
        while (response := self.try_poll(group, **more)).status_code == 200:
            window: Json = response.json()["window"]
            found.append(window)
            body = {"leaseId": window["leaseId"], "success": True}
            responded(self.api.post("/api/v1/stream/ack", body), 200)
        assert response.status_code == 204, response.text
        return found

    def shown(self, *path: str) -> Json:
        """The stream as shown by the broker."""
        return self.api.read("/".join(["/api/v1/resources/streams", self.stream, *path]))

    def close(self) -> None:
        """Disconnect."""
        self.pipeline.close()
        self.api.http.close()


def by_key(windows: Sequence[Json]) -> dict[str, list[tuple[Any, list[Any]]]]:
    """Of each key the aggregates of its windows, and the `n` of their messages."""
    found: dict[str, list[tuple[Any, list[Any]]]] = {}
    for window in windows:
        assert window["count"] == len(window["messages"])
        numbers = [message["data"]["n"] for message in window["messages"]]
        found.setdefault(window["key"], []).append((window.get("aggregates"), numbers))
    return found
