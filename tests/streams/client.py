"""User steps with the published client of that time, which still supports streams.

`python -m tests.streams.client STEP URL STREAM …` prints the result of the step, as one line of JSON.
"""

import asyncio
import json
import sys
from typing import Any

import queen
from queen import Queen


async def define(client: Any, stream: str, namespace: str, queue: str) -> Any:
    builder = client.stream(stream, namespace).sources([queue]).partitioned()
    return await builder.tumbling_time(60).grace_period(1).lease_timeout(2).define()


async def consume(client: Any, stream: str, group: str, count: str, failing: str) -> Any:
    """Process this many windows; the first attempt at the failing key raises."""
    consumer = client.consumer(stream, group)
    consumer._poll_timeout = 5000
    seen: list[Any] = []
    failed: list[str] = []

    async def process(window: Any) -> None:
        if window.key == failing and not failed:
            failed.append(window.id)
            raise ValueError("not yet")
        sums = window.aggregate({"count": True, "sum": ["data.n"]})
        seen.append([window.key, sums["count"], sums["sum"]["data.n"]])
        if len(seen) == int(count):
            consumer.stop()

    await consumer.process(process)
    return {"seen": sorted(seen), "failed": failed}


async def slowly(client: Any, stream: str, group: str) -> Any:
    """Take longer for a window than its lease lasts; renewed meanwhile, it is not delivered to others."""
    consumer, other = client.consumer(stream, group), client.consumer(stream, group)
    consumer._lease_renew_interval = 500
    other._poll_timeout = 100
    stolen: list[str] = []

    async def process(window: Any) -> None:
        for _ in range(6):
            await asyncio.sleep(0.4)
            if (taken := await other.poll_window()) is not None:
                stolen.append(taken.id)
        consumer.stop()

    await consumer.process(process)
    return {"stolen": stolen}


async def seek(client: Any, stream: str, group: str, time: str) -> Any:
    return await client.consumer(stream, group).seek(time)


async def run(step: str, url: str, *arguments: str) -> Any:
    steps: dict[str, Any] = {"define": define, "consume": consume, "slowly": slowly, "seek": seek}
    async with Queen(url) as client:
        return await steps[step](client, *arguments)


if __name__ == "__main__":
    assert queen.__version__ == "0.14.0"
    sys.stdout.write("\n" + json.dumps(asyncio.run(run(*sys.argv[1:]))) + "\n")
