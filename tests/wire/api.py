"""The HTTP contract as Python calls, with responses as the broker sent them."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2

from tests.horizon import wait_for_horizon

Json = dict[str, Any]
Message = dict[str, Any]

LONG_ENOUGH_MS = 10_000
"""Timeout of pops that must deliver; they return as soon as a message is available."""


def name_in_path(name: str) -> str:
    """A queue, partition or group name, percent-encoded for use inside a path."""
    return quote(name, safe="")


class Api:
    """One broker's HTTP API; with its database, a pop of several finds all that was pushed before."""

    def __init__(self, url: str, database_url: str | None = None) -> None:
        self.url = url
        self.database_url = database_url
        # Reading certificates, which plain HTTP needs none of, takes 25 ms.
        self.http = httpx2.Client(base_url=url, timeout=30.0, verify=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def get(self, path: str, **query: Any) -> httpx2.Response:
        return self.http.get(path, params=query)

    def post(self, path: str, body: Any = None) -> httpx2.Response:
        return self.http.post(path) if body is None else self.http.post(path, json=body)

    def delete(self, path: str, **query: Any) -> httpx2.Response:
        return self.http.delete(path, params=query)

    def read(self, path: str, **query: Any) -> Json:
        """A GET that must succeed, as an object."""
        return responded(self.get(path, **query), 200)

    def configure(
        self, queue: str, /, namespace: str | None = None, task: str | None = None, **options: Any
    ) -> Json:
        """Create the queue or set its options; options in the wire's own spelling."""
        body = {"queue": queue, "namespace": namespace, "task": task, "options": options}
        return responded(self.post("/api/v1/configure", body), 200)

    def push_items(self, items: Iterable[Mapping[str, Any]]) -> httpx2.Response:
        return self.post("/api/v1/push", {"items": list(items)})

    def push(self, queue: str, *payloads: Any, partition: str = "Default") -> list[Json]:
        """Push each payload as its own message of one request, which must succeed."""
        items = [{"queue": queue, "partition": partition, "payload": payload} for payload in payloads]
        response = self.push_items(items)
        assert response.status_code == 201, response.text
        results: list[Json] = response.json()
        return results

    def pop(self, queue: str, /, partition: str | None = None, **query: Any) -> httpx2.Response:
        """One pop; does not wait unless told to."""
        path = f"/api/v1/pop/queue/{name_in_path(queue)}"
        if partition is not None:
            path += f"/partition/{name_in_path(partition)}"
        if self.database_url is not None and query.keys() & {"batch", "partitions"}:
            wait_for_horizon(self.database_url)
        return self.get(path, **query)

    def take(self, queue: str, /, partition: str | None = None, **query: Any) -> list[Message]:
        """A pop that must deliver something: its messages."""
        waiting = {"wait": "true", "timeout": LONG_ENOUGH_MS, **query}
        response = responded(self.pop(queue, partition, **waiting), 200)
        messages: list[Message] = response["messages"]
        assert messages
        return messages

    def drain(self, queue: str, count: int, /, **query: Any) -> list[Message]:
        """Take and complete messages until `count` of them came."""
        messages: list[Message] = []
        while len(messages) < count:
            batch = self.take(queue, **{"batch": count - len(messages), **query})
            self.complete(batch, query.get("consumerGroup"))
            messages += batch
        return messages

    def empty(self, queue: str, /, **query: Any) -> bool:
        """Whether a pop that does not wait finds nothing now."""
        response = self.pop(queue, **query)
        assert response.status_code in (200, 204), response.text
        return response.status_code == 204

    def ack(self, message: Message, status: str = "completed", /, **fields: Any) -> Json:
        """Ack one message under its own lease."""
        return responded(self.post("/api/v1/ack", ack_of(message, status, **fields)), 200)

    def ack_batch(
        self, acks: Sequence[tuple[Message, str]], group: str | None = None, **fields: Any
    ) -> list[Json]:
        """Ack several messages in one request."""
        body = {
            "consumerGroup": group,
            "acknowledgments": [ack_of(message, status, **fields) for message, status in acks],
        }
        response = self.post("/api/v1/ack/batch", body)
        assert response.status_code == 200, response.text
        results: list[Json] = response.json()
        return results

    def complete(self, messages: Iterable[Message], group: str | None = None) -> None:
        """Complete the messages; every single ack must succeed."""
        results = self.ack_batch([(message, "completed") for message in messages], group)
        assert all(result["success"] for result in results), results

    def transaction(self, operations: Sequence[Json], required_leases: Sequence[str] = ()) -> Json:
        body = {"operations": list(operations), "requiredLeases": list(required_leases)}
        return responded(self.post("/api/v1/transaction", body), 200)

    def parked(self) -> int:
        """Number of long polls waiting in this broker."""
        return int(self.read("/metrics")["metrics"]["queenspark_parked_polls"])

    def dead_letters(self, queue: str, /, **query: Any) -> list[Json]:
        found: list[Json] = self.read("/api/v1/dlq", queue=queue, **query)["messages"]
        return found

    def seek(self, group: str, queue: str, /, partition: str | None = None, **to: Any) -> Json:
        path = f"/api/v1/consumer-groups/{name_in_path(group)}/queues/{name_in_path(queue)}"
        if partition is not None:
            path += f"/partitions/{name_in_path(partition)}"
        return responded(self.post(f"{path}/seek", to), 200)


def responded(response: httpx2.Response, status: int) -> Json:
    """Check the status of a response; return its body."""
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    body = response.json()
    assert isinstance(body, dict)
    return body


def refused(response: httpx2.Response, status: int) -> str:
    """The error message of a response that must be an error."""
    error = responded(response, status)["error"]
    assert isinstance(error, str)
    assert error
    return error


def ack_of(message: Message, status: str = "completed", **fields: Any) -> Json:
    """The acknowledgment of a message as clients send it."""
    own = {name: message[name] for name in ("transactionId", "partitionId", "leaseId") if message.get(name)}
    return {**own, "status": status, **fields}


def ack_operation(message: Message, status: str = "completed", **fields: Any) -> Json:
    """The acknowledgment of a message as an operation of a transaction."""
    return {"type": "ack", **ack_of(message, status, **fields)}


def push_operation(queue: str, *payloads: Any, partition: str = "Default") -> Json:
    """A push as an operation of a transaction."""
    items = [{"queue": queue, "partition": partition, "payload": payload} for payload in payloads]
    return {"type": "push", "items": items}


def payloads_of(messages: Iterable[Message]) -> list[Any]:
    """The payloads of messages, in order."""
    return [message["data"] for message in messages]
