"""A producer that records each batch before it pushes it: `python -m tests.chaos.producer …`.

After a kill it first repeats the last push if it was not acknowledged.
"""

import random
import sys
import time
from pathlib import Path
from typing import Any

from tests.chaos.endpoint import Endpoint
from tests.chaos.ledger import Ledger
from tests.chaos.load import PRODUCERS, QUEUES, USERS

SIZES = (1, 5, 14, 60)
MEAN = sum(SIZES) / len(SIZES)
DISORDER_MS = (0, 0, 0, 40, -50, -900, -7000)
BEHIND_SECONDS = 2.0


def batch_of(name: str, seed: int, number: int, first: int, keys: int, error_ms: int) -> list[list[Any]]:
    """Return queue, partition, transactionId and payload of each message of a batch."""
    chance = random.Random(f"{seed} {name} {number}")
    now = int(time.time() * 1000) + error_ms
    return [
        [
            chance.choice(QUEUES),
            f"{name} {chance.randrange(keys)}",
            f"{name} {n}",
            {
                "n": n * len(PRODUCERS) + PRODUCERS.index(name),
                "user": f"u{chance.randrange(USERS)}",
                "at": now + chance.choice(DISORDER_MS),
            },
        ]
        for n in range(first, first + chance.choice(SIZES))
    ]


def clock_error(file: Path) -> int:
    """Return the current clock error of this producer in milliseconds."""
    try:
        return int(file.read_text() or 0)
    except FileNotFoundError:
        return 0


def produce(name: str, folder: Path, seed: int, per_second: float, keys: int, urls: list[str]) -> None:
    """Push until the stop file appears."""
    ledger = Ledger(folder / f"producer-{name}.ledger")
    endpoint = Endpoint(urls)
    number = first = 0
    if ledger.last is not None:
        kind, number, first, *rest = ledger.last
        if kind == "send":
            first = push(ledger, endpoint, number, first, rest[0])
    at = time.monotonic()
    while not (folder / "stop-producers").exists():
        number += 1
        items = batch_of(name, seed, number, first, keys, clock_error(folder / f"clock-{name}"))
        ledger.write("send", number, first, items)
        first = push(ledger, endpoint, number, first, items)
        at = max(at + len(items) / per_second, time.monotonic() - BEHIND_SECONDS)
        time.sleep(max(0.0, at - time.monotonic()))


def push(ledger: Ledger, endpoint: Endpoint, number: int, first: int, items: list[list[Any]]) -> int:
    """Push a batch until there is a response; return the number of the next message."""
    names = ("queue", "partition", "transactionId", "payload")
    body = {"items": [dict(zip(names, item, strict=True)) for item in items]}
    results = endpoint.until_response("POST", "/api/v1/push", json=body).json()
    for item, result in zip(items, results, strict=True):
        if result["status"] not in ("queued", "duplicate") or result["transaction_id"] != item[2]:
            raise RuntimeError(f"{item} got the result {result}")
    following = first + len(items)
    ledger.write("acked", number, following, [int(result["message_id"]) for result in results])
    return following


if __name__ == "__main__":
    name, folder, seed, per_second, keys, *urls = sys.argv[1:]
    produce(name, Path(folder), int(seed), float(per_second), int(keys), urls)
