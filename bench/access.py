"""`python -m bench.access`: the cost of access control for a push of one message.

Two brokers on one database, one open and one that checks a credential, take turns: machines change from
minute to minute, and runs within seconds of each other can be compared.
"""

import asyncio
import statistics
import time
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from joserfc import jwt
from joserfc.jwk import OctKey
from rich.console import Console
from rich.table import Table

from bench.cpu import Cpu
from bench.machine import free_port, running_machine, start_broker, wait_until_healthy
from bench.wrk import run_wrk
from queenspark.store.api_keys import NewKey
from queenspark.store.store import Store

ROUNDS = 8
SECONDS = 3.0
CONNECTIONS = 50
SECRET = "a secret of the benchmark, long enough for HS256"


class Run(NamedTuple):
    """Messages a second, and microseconds of the broker's processor time for each."""

    rate: float
    cost: float


def main() -> None:
    """Measure, and print the medians."""
    with running_machine() as machine:
        key = asyncio.run(_key(machine.database_url))
        claims = {"sub": "bench", "role": "read-write", "exp": int(time.time()) + 3600}
        token = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET.encode()))
        port = free_port()
        log = Path("/dev/null")
        more = {"ACCESS_CONTROL": "true", "JWT_ENABLED": "true", "JWT_SECRET": SECRET}
        closed = start_broker(machine.database_url, port, log, **more)
        try:
            wait_until_healthy(closed, port, log)
            url = f"http://127.0.0.1:{port}"
            kinds = {
                "open": (machine.url, machine.broker_pid, ""),
                "API key": (url, closed.pid, key),
                "token": (url, closed.pid, token),
            }
            runs: dict[str, list[Run]] = {kind: [] for kind in kinds}
            for number in range(ROUNDS + 1):
                turn = list(kinds)[number % len(kinds) :] + list(kinds)[: number % len(kinds)]
                for kind, (where, pid, credential) in ((kind, kinds[kind]) for kind in turn):
                    run = _push(where, pid, machine.postgres_pid, credential)
                    if number:  # the first is to warm up
                        runs[kind].append(run)
        finally:
            closed.terminate()
            closed.wait(30)
    _show(runs)


async def _key(database_url: str) -> str:
    store = Store(database_url, pool_size=2)
    await store.open()
    try:
        return (await store.api_keys.create(NewKey(name="bench", role="read-write"), "bench"))[1]
    finally:
        await store.close()


def _push(url: str, broker: int, postgres: int, credential: str) -> Run:
    name = f"access-{uuid4().hex[:8]}"
    with Cpu(broker, postgres) as cpu:
        report = run_wrk(
            "push", url, name, 1, 100, "x", credential, threads=2, connections=CONNECTIONS, seconds=SECONDS
        )
    if report["failed"]:
        raise SystemExit(f"{report['failed']} pushes failed")
    rate = report["requests"] / report["seconds"]
    return Run(rate, cpu.cores["broker"] / rate * 1e6)


def _show(runs: dict[str, list[Run]]) -> None:
    table = Table("push, batch 1", "msg/s, median", "µs of the broker, median", "relative to open")
    base = statistics.median(run.rate for run in runs["open"])
    for kind, found in runs.items():
        rate, cost = (statistics.median(values) for values in zip(*found, strict=True))
        table.add_row(kind, f"{rate:,.0f}", f"{cost:.0f}", f"{rate / base - 1:+.1%}")
    Console().print(table)


if __name__ == "__main__":
    main()
