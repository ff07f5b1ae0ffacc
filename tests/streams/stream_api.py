"""The stream endpoints as Python calls, and windows sealed as the pipeline will seal them."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import psycopg

from tests.horizon import wait_for_horizon
from tests.streams.sealing import Pipeline, Position, Sealed
from tests.wire.api import Api, Json, responded

LONG_ENOUGH_MS = 10_000


class Pushed:
    """A message of a source queue, with its position in the log."""

    def __init__(self, queue_id: int, partition: str, position: Position, created_us: int, data: Any) -> None:
        self.queue_id = queue_id
        self.partition = partition
        self.position = position
        self.created_us = created_us
        self.data = data


class StreamApi:
    """One stream: `define` makes it, `seal` pushes windows of it, `poll` takes them."""

    def __init__(self, api: Api, database_url: str) -> None:
        tag = uuid4().hex[:10]
        self.api = api
        self.database_url = database_url
        self.name = f"s-{tag}"
        self.namespace = "tests"
        self.queue = f"q-{tag}"
        self.id = 0
        self.queue_id = 0
        self.pipeline = Pipeline(database_url, bucket=secrets.randbelow(2**31))

    def close(self) -> None:
        self.pipeline.sink.close()

    def run(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement of the test's own."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, params)
            return cursor.fetchall() if cursor.description else []

    # define

    def request(self, **fields: Any) -> Json:
        given: Json = {"name": self.name, "namespace": self.namespace, "source_queue_names": [self.queue]}
        return {**given, **fields}

    def try_define(self, **fields: Any) -> httpx2.Response:
        return self.api.post("/api/v1/stream/define", self.request(**fields))

    def define(self, **fields: Any) -> Json:
        """Define the stream; its queue is made first."""
        self.api.configure(self.queue)
        response = responded(self.try_define(**fields), 201)
        self.id = int(response["stream_id"])
        ((self.queue_id,),) = self.run("SELECT queue_id FROM queenspark.streams WHERE id = %s", self.id)
        return response

    # records and windows

    def push(
        self, *payloads: Any, partition: str = "p", queue: str | None = None, headers: Json | None = None
    ) -> list[Pushed]:
        """Push records, each with a transaction of its own."""
        pushed = []
        for payload in payloads:
            item = {"queue": queue or self.queue, "partition": partition, "payload": payload}
            response = self.api.push_items([{**item, "headers": headers}])
            assert response.status_code == 201, response.text
            (result,) = response.json()
            ((queue_id, txid, id_, created_us),) = self.run(
                "SELECT queue_id, txid, id, (extract(epoch FROM created_at) * 1000000)::bigint"
                " FROM queenspark.messages WHERE partition_id = %s AND transaction_id = %s",
                int(result["partition_id"]), result["transaction_id"],
            )  # fmt: skip
            pushed.append(Pushed(queue_id, partition, (txid, id_), created_us, payload))
        return pushed

    def over(self, records: Sequence[Pushed], key: str | None = None, **more: Any) -> Sealed:
        """The window that holds these records, by their creation."""
        sources = []
        for queue_id in dict.fromkeys(record.queue_id for record in records):
            own = [record.position for record in records if record.queue_id == queue_id]
            sources.append((queue_id, min(own), max(own)))
        times = [record.created_us for record in records]
        given = {
            "start_us": min(times), "end_us": max(times) + 1, "count": len(records), "sources": sources,
        }  # fmt: skip
        return Sealed(key=key or records[0].partition, **{**given, **more})

    def seal(self, *windows: Sealed, **more: Any) -> int:
        """Push windows; a poll finds them at once."""
        sealed = self.pipeline.seal(self.id, self.queue_id, *windows, **more)
        wait_for_horizon(self.database_url)
        return sealed

    # consume

    def try_poll(self, group: str = "g", timeout: float = 0, **more: Any) -> httpx2.Response:
        body = {"streamName": self.name, "consumerGroup": group, "timeout": timeout, **more}
        return self.api.post("/api/v1/stream/poll", body)

    def poll(self, group: str = "g", **more: Any) -> Json:
        """A poll that must bring a window."""
        window = responded(self.try_poll(group, **{"timeout": LONG_ENOUGH_MS, **more}), 200)["window"]
        assert isinstance(window, dict)
        return window

    def empty(self, group: str = "g") -> bool:
        response = self.try_poll(group)
        assert response.status_code in (200, 204), response.text
        return response.status_code == 204

    def try_ack(self, window: Json, success: bool = True, **more: Any) -> httpx2.Response:
        body = {"windowId": window["id"], "leaseId": window["leaseId"], "success": success, **more}
        return self.api.post("/api/v1/stream/ack", body)

    def ack(self, window: Json, success: bool = True, **more: Any) -> Json:
        return responded(self.try_ack(window, success, **more), 200)

    def drain(self, group: str = "g") -> list[str]:
        """All windows that a group still gets now, acked: key and start in seconds."""
        found = []
        while (response := self.try_poll(group)).status_code == 200:
            window = response.json()["window"]
            self.ack(window)
            found.append(short(window))
        return found

    def seek(self, time: float | str, group: str = "g") -> Json:
        text = time if isinstance(time, str) else datetime.fromtimestamp(time, UTC).isoformat()
        body = {"streamName": self.name, "consumerGroup": group, "timestamp": text}
        return responded(self.api.post("/api/v1/stream/seek", body), 200)

    def renew(self, window: Json, extend_ms: int) -> httpx2.Response:
        return self.api.post(
            "/api/v1/stream/renew-lease", {"leaseId": window["leaseId"], "extend_ms": extend_ms}
        )

    def resource(self, *path: str, **query: Any) -> Json:
        return self.api.read("/".join(["/api/v1/resources/streams", self.name, *path]), **query)

    def expire_leases(self) -> None:
        """Expire the stream's leases."""
        self.run(
            "UPDATE queenspark.places p SET lease_expires_at = clock_timestamp() - interval '1 second',"
            " available_at = clock_timestamp() - interval '1 second' FROM queenspark.groups g"
            " WHERE g.id = p.group_id AND g.queue_id = %s AND cardinality(p.leased) > 0",
            self.queue_id,
        )

    def end_waits(self) -> list[float]:
        """Make the stream's retries due; return their delays in seconds."""
        rows = self.run(
            "WITH waiting AS (SELECT p.group_id, p.partition_id, p.retry_at FROM queenspark.places p"
            " JOIN queenspark.groups g ON g.id = p.group_id"
            " WHERE g.queue_id = %s AND p.retry_at IS NOT NULL)"
            " UPDATE queenspark.places p SET retry_at = NULL, available_at = clock_timestamp() FROM waiting w"
            " WHERE p.group_id = w.group_id AND p.partition_id = w.partition_id"
            " RETURNING extract(epoch FROM w.retry_at - p.acked_at)::float8",
            self.queue_id,
        )
        return [row[0] for row in rows]


def short(window: Json) -> str:
    """A window as its key and its start in minutes."""
    return f"{window['key']}{round(datetime.fromisoformat(window['start']).timestamp()) // 60}"


def data_of(window: Json) -> list[Any]:
    """The payloads of a window."""
    return [message["data"] for message in window["messages"]]
