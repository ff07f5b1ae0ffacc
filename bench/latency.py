"""Latency from the start of a push until a parked consumer has the message."""

import asyncio
import statistics
import time
from uuid import uuid4

from bench.bare import Bare
from bench.connection import Connection
from bench.cpu import Cpu
from bench.figure import Figure
from bench.machine import Machine

RATE = 200
CONSUMERS = 10
PARTITIONS = 10
PUSHERS = 16
GROUP = "bench"


class Latency:
    """A steady stream of single pushes to consumers that wait for them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._queue = f"latency-{uuid4().hex[:8]}"
        self._taken: dict[int, float] = {}
        self._sent: dict[int, float] = {}
        self._everything = asyncio.Event()

    async def run(self, seconds: float) -> list[float]:
        """Latencies in milliseconds, without those of the first fifth, which is the warm-up."""
        count = int(RATE * seconds)
        consumers = [asyncio.create_task(self._consume(count)) for _ in range(CONSUMERS)]
        pushers: asyncio.Queue[Connection] = asyncio.Queue()
        for _ in range(PUSHERS):
            pushers.put_nowait(Connection(self._port))
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                await asyncio.sleep(max(0.0, started + number / RATE - time.perf_counter()))
                group.create_task(self._push(number, pushers))
        await asyncio.wait_for(self._everything.wait(), timeout=10)
        for consumer in consumers:
            consumer.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)
        while not pushers.empty():
            pushers.get_nowait().close()
        return [1e3 * (self._taken[n] - self._sent[n]) for n in range(count // 5, count)]

    async def _push(self, number: int, pushers: asyncio.Queue[Connection]) -> None:
        connection = await pushers.get()
        self._sent[number] = time.perf_counter()
        item = {
            "queue": self._queue,
            "partition": f"p{number * 7 % PARTITIONS}",
            "transactionId": f"{self._queue}-{number}",
            "payload": {
                "number": number,
                "event": "page_view",
                "note": "abcdefghijklmnopqrstuvwxyz0123456789",
            },
        }
        status, response = await connection.call("POST", "/api/v1/push", {"items": [item]})
        if status != 201:
            raise RuntimeError(f"a push returned {status}: {response}")
        pushers.put_nowait(connection)

    async def _consume(self, count: int) -> None:
        connection = Connection(self._port)
        path = f"/api/v1/pop/queue/{self._queue}?batch=10&consumerGroup={GROUP}&wait=true&timeout=5000"
        try:
            while True:
                status, response = await connection.call("GET", path)
                now = time.perf_counter()
                if status == 204:
                    continue
                if status != 200:
                    raise RuntimeError(f"a pop returned {status}: {response}")
                for message in response["messages"]:
                    self._taken.setdefault(message["data"]["number"], now)
                acks = [
                    {name: message[name] for name in ("transactionId", "partitionId", "leaseId")}
                    for message in response["messages"]
                ]
                body = {
                    "consumerGroup": GROUP,
                    "acknowledgments": [{**ack, "status": "completed"} for ack in acks],
                }
                await connection.call("POST", "/api/v1/ack/batch", body)
                if len(self._taken) == count:
                    self._everything.set()
        finally:
            connection.close()


def measure_latency(machine: Machine, seconds: float) -> list[Figure]:
    """The median and the 99th percentile of the latency from push to delivery."""
    with Cpu(machine.broker_pid, machine.postgres_pid) as cpu:
        latencies = asyncio.run(Latency(machine.port).run(seconds))
    bare = Bare(machine.database_url, PARTITIONS).latencies(RATE, seconds / 2)
    what = f"delivery at {RATE} msg/s, {CONSUMERS} parked consumers"
    return [
        Figure(
            name=f"latency-p{percent}",
            what=f"{what}, p{percent}",
            unit="ms",
            measured=percentile(latencies, percent),
            bare=percentile(bare, percent),
            details={"messages": len(latencies), "max_ms": round(max(latencies), 2)},
            cores=cpu.cores,
        )
        for percent in (50, 99)
    ]


def percentile(values: list[float], percent: int) -> float:
    """The percentile of the values."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
