"""Load balancing: the members of a group share its windows; each window goes to one of them.

Two workers, which could run on two machines, process windows of different keys at the same time. Prints
the number of windows per worker. Within one program, `process(handler, concurrency=2)` does the same.
"""

import asyncio
from collections import Counter

from queenspark import AsyncQueen, AsyncWindow, Outgoing

CITIES = ["Bern", "Oslo", "Rome", "Wien"]


async def main() -> None:
    async with AsyncQueen() as queen:
        stream, orders = queen.stream("orders-by-city"), queen.queue("city-orders")
        await stream.delete()
        await orders.delete()
        await orders.push([Outgoing({"order": number}, partition=CITIES[number % 4]) for number in range(12)])
        await stream.sources(["city-orders"]).partitioned().tumbling_time(2).grace_period(0).define()

        done: list[tuple[str, str]] = []

        async def work(name: str) -> None:
            async def handle(window: AsyncWindow) -> None:
                await asyncio.sleep(0.2)  # the work
                done.append((name, window.key))

            await queen.consumer("orders-by-city", "workers").process(handle, limit=2)

        await asyncio.gather(work("worker 1"), work("worker 2"))
        for name, windows in sorted(Counter(name for name, _ in done).items()):
            print(f"{name} had {windows} windows")
        print(f"together: {sorted(city for _, city in done)}")


asyncio.run(main())
