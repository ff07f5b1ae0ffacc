"""User steps with the published client of that time: push, define a stream, and consume its windows.

`python -m tests.system.client STEP URL STREAM …` prints the result of the step, as one line of JSON.
"""

import asyncio
import json
import sys
from typing import Any

import queen
from queen import Queen

SECONDS = 90


async def define(client: Any, stream: str, kind: str, *queues: str) -> Any:
    """A stream with windows of a second, for each partition or over all."""
    for queue in queues:
        await client.queue(queue).create()
    builder = client.stream(stream, "tests").sources(list(queues))
    if kind == "partitioned":
        builder = builder.partitioned()
    return await builder.tumbling_time(1).grace_period(1).lease_timeout(10).define()


async def push(client: Any, _: str, count: str, *queues: str) -> Any:
    """Numbered messages, over several seconds, queues and partitions."""
    for number in range(int(count)):
        queue = client.queue(queues[number % len(queues)]).partition(f"user-{number % 3}")
        await queue.push([{"data": {"n": number, "user": number % 3}}])
        await asyncio.sleep(0.05)
    return {"pushed": int(count)}


async def consume(client: Any, stream: str, group: str, consumers: str, count: str) -> Any:
    """Several consumers of a group process windows up to a number of messages; return their shares."""
    workers = [client.consumer(stream, group) for _ in range(int(consumers))]
    taken: list[dict[str, Any]] = []

    def working(number: int) -> Any:
        async def process(window: Any) -> None:
            numbers = [message["data"]["n"] for message in window.all_messages]
            taken.append({"worker": number, "id": window.id, "key": window.key, "numbers": numbers})
            await asyncio.sleep(0.1)
            if sum(len(each["numbers"]) for each in taken) >= int(count):
                for worker in workers:
                    worker.stop()

        return process

    for worker in workers:
        worker._poll_timeout = 3000
    running = [worker.process(working(number)) for number, worker in enumerate(workers)]
    await asyncio.wait_for(asyncio.gather(*running), SECONDS)
    return taken


async def run(step: str, url: str, *arguments: str) -> Any:
    steps: dict[str, Any] = {"define": define, "push": push, "consume": consume}
    async with Queen(url) as client:
        return await steps[step](client, *arguments)


if __name__ == "__main__":
    assert queen.__version__ == "0.14.0"
    sys.stdout.write("\n" + json.dumps(asyncio.run(run(*sys.argv[1:]))) + "\n")
