"""`python -m bench.client_process URL KIND NAME GROUP LIMIT [OPTION=VALUE…]`: one consumer process.

Prints how many windows or messages were taken and acked, and in how many seconds.
"""

import asyncio
import sys
import time
from urllib.parse import urlsplit

from bench.connection import Connection
from queenspark import Queen


def windows(url: str, name: str, group: str, limit: int, concurrency: int = 1) -> int:
    """Take windows with the client."""
    with Queen(url) as queen:
        queen.consumer(name, group).process(lambda window: None, limit=limit, concurrency=concurrency)
    return limit


def messages(url: str, name: str, group: str, limit: int, **options: int) -> int:
    """Take messages with the client."""
    with Queen(url) as queen:
        queue = queen.queue(name).group(group).limit(limit)
        for option, value in options.items():
            queue = getattr(queue, option)(value)
        queue.consume(lambda batch: None)
    return limit


def raw(kind: str, url: str, name: str, group: str, limit: int, consumers: int, batch: int) -> int:
    """Take windows or messages with bare requests, one after the other on each connection."""
    taken = 0
    poll = {"streamName": name, "consumerGroup": group, "timeout": 1000, "maxWindows": batch}
    pop = f"/api/v1/pop/queue/{name}?consumerGroup={group}&batch={batch}&wait=true&timeout=1000"

    async def consume() -> None:
        nonlocal taken
        connection = Connection(urlsplit(url).port or 0)
        while taken < limit:
            if kind == "windows":
                _, response = await connection.call("POST", "/api/v1/stream/poll", poll)
            else:
                _, response = await connection.call("GET", pop)
            found = [] if response is None else response[kind]
            fields = ("transactionId", "partitionId", "leaseId")
            acks = [{field: each[field] for field in fields} for each in found]
            if acks:
                body = {"consumerGroup": group, "acknowledgments": acks}
                _, said = await connection.call("POST", "/api/v1/ack/batch", body)
                assert all(each["success"] for each in said)
            taken += len(acks)
        connection.close()

    async def consume_together() -> None:
        await asyncio.gather(*(consume() for _ in range(consumers)))

    asyncio.run(consume_together())
    return taken


def main(url: str, kind: str, name: str, group: str, limit: str, *given: str) -> None:
    """Consume up to a limit and print the count and the seconds."""
    options = {option: int(value) for option, value in (each.split("=") for each in given)}
    began = time.perf_counter()
    if kind.startswith("raw-"):
        taken = raw(kind.removeprefix("raw-"), url, name, group, int(limit), **options)
    else:
        taken = (windows if kind == "windows" else messages)(url, name, group, int(limit), **options)
    print(taken, time.perf_counter() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
