"""Consumers of all groups: `python -m tests.chaos.consumer NAME FOLDER URL…`."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.chaos.endpoint import Endpoint
from tests.chaos.ledger import Ledger
from tests.chaos.load import GROUPS, RELAY, RELAYED, WINDOW_GROUPS
from tests.system.load import fingerprint
from tests.wire.api import Json

POLL_MS = 2000
BATCH = 100
PARTITIONS = 20


class Consumer:
    """The threads of one process, each for one group of a queue or stream."""

    def __init__(self, name: str, folder: Path, urls: list[str]) -> None:
        self._name = name
        self._folder = folder
        self._urls = urls
        self._stop = folder / "stop-consumers"

    def run(self) -> None:
        """Consume until the stop file appears. If a thread fails, the process exits."""
        threads = [threading.Thread(target=self._guarded, args=(self._messages, *each)) for each in GROUPS]
        threads += [
            threading.Thread(target=self._guarded, args=(self._windows, *each)) for each in WINDOW_GROUPS
        ]
        threads += [threading.Thread(target=self._guarded, args=(self._relay, *RELAY))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guarded(self, work: Callable[[Ledger, Endpoint, str, str], None], group: str, source: str) -> None:
        ledger = Ledger(self._folder / f"consumer-{self._name}-{group}-{source}-{work.__name__}.ledger")
        endpoint = Endpoint(self._urls)
        try:
            while not self._stop.exists():
                work(ledger, endpoint, group, source)
        except BaseException as error:  # noqa: BLE001 - every error must be recorded
            ledger.write("failed", repr(error))
            traceback.print_exc()
            os._exit(1)

    def _messages(self, ledger: Ledger, endpoint: Endpoint, group: str, queue: str) -> None:
        messages = self._pop(ledger, endpoint, group, queue)
        if not messages:
            return
        body = {
            "consumerGroup": group,
            "acknowledgments": [{**_ack(message), "status": "completed"} for message in messages],
        }
        lease = messages[0]["leaseId"]
        # Write this before sending: a consumer killed in between cannot know whether the acks arrived.
        ledger.write("acking", [message["transactionId"] for message in messages], lease)
        response = endpoint.once("POST", "/api/v1/ack/batch", json=body)
        if response is not None:
            done = [each["transactionId"] for each in response.json() if each["success"]]
            ledger.write("acked", time.monotonic(), done, lease)

    def _relay(self, ledger: Ledger, endpoint: Endpoint, group: str, queue: str) -> None:
        """Move messages to another queue under new ids: only the lease prevents duplicates."""
        messages = self._pop(ledger, endpoint, group, queue)
        if not messages:
            return
        lease = messages[0]["leaseId"]
        acks = [{"type": "ack", **_ack(message), "consumerGroup": group} for message in messages]
        items = [
            {
                "queue": RELAYED, "partition": message["partition"], "transactionId": str(uuid4()),
                "payload": message["transactionId"],
            }
            for message in messages
        ]  # fmt: skip
        body = {"requiredLeases": [lease], "operations": [*acks, {"type": "push", "items": items}]}
        ids = [message["transactionId"] for message in messages]
        ledger.write("acking", ids, lease)
        response = endpoint.until_response("POST", "/api/v1/transaction", json=body).json()
        if response["success"]:
            ledger.write("acked", time.monotonic(), ids, lease)

    def _pop(self, ledger: Ledger, endpoint: Endpoint, group: str, queue: str) -> list[Json]:
        query = {
            "consumerGroup": group, "batch": BATCH, "partitions": PARTITIONS, "wait": "true",
            "timeout": POLL_MS,
        }  # fmt: skip
        sent = time.monotonic()
        response = endpoint.once("GET", f"/api/v1/pop/queue/{queue}", params=query)
        if response is None or response.status_code == 204:
            return []
        messages: list[Json] = response.json()["messages"]
        got = [[message["partition"], message["transactionId"], message["id"]] for message in messages]
        ledger.write("got", sent, time.monotonic(), got, messages[0]["leaseId"])
        return messages

    def _windows(self, ledger: Ledger, endpoint: Endpoint, group: str, stream: str) -> None:
        body = {"streamName": stream, "consumerGroup": group, "timeout": POLL_MS, "maxWindows": 40}
        sent = time.monotonic()
        response = endpoint.once("POST", "/api/v1/stream/poll", json=body)
        if response is None or response.status_code == 204:
            return
        windows = response.json()["windows"]
        now = time.monotonic()
        for window in windows:
            data = [message["data"] for message in window["messages"]]
            seen = [window["key"], _identity(window), [len(data), sum(map(fingerprint, data))]]
            ledger.write("got", sent, now, [seen], window["leaseId"])
        acks = [{**_ack(window), "status": "completed"} for window in windows]
        sent_acks = {"consumerGroup": group, "acknowledgments": acks}
        ledger.write("acking", [_identity(window) for window in windows], "")
        acked = endpoint.once("POST", "/api/v1/ack/batch", json=sent_acks)
        if acked is not None:
            for window, result in zip(windows, acked.json(), strict=True):
                if result["success"]:
                    ledger.write("acked", time.monotonic(), [_identity(window)], window["leaseId"])


def _identity(window: Json) -> str:
    return f"{window['id']}#{window['revision']}"


def _ack(message: Json) -> dict[str, Any]:
    return {name: message[name] for name in ("transactionId", "partitionId", "leaseId")}


if __name__ == "__main__":
    name, folder, *urls = sys.argv[1:]
    Consumer(name, Path(folder), urls).run()
