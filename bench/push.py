"""Messages pushed per second."""

from uuid import uuid4

import psycopg

from bench.bare import Bare
from bench.cpu import Cpu
from bench.figure import Figure
from bench.machine import Machine
from bench.wrk import WrkError, run_wrk

PARTITIONS = 100
THREADS = 2


def measure_push(machine: Machine, batch: int, connections: int, seconds: float) -> Figure:
    """Push batches through this many connections, after a short warm-up."""
    queue = f"push-{batch}-{uuid4().hex[:8]}"
    load = {"threads": THREADS, "connections": connections}
    run_wrk("push", machine.url, queue, batch, PARTITIONS, "warm", **load, seconds=max(1, seconds / 5))
    before = stored(machine, queue)
    with Cpu(machine.broker_pid, machine.postgres_pid) as cpu:
        report = run_wrk("push", machine.url, queue, batch, PARTITIONS, "real", **load, seconds=seconds)
    pushed = report["requests"] * batch
    kept = stored(machine, queue) - before
    if report["failed"] or kept < pushed:
        raise WrkError(
            f"{pushed} messages were confirmed, {kept} are stored, {report['failed']} calls failed"
        )
    bare = Bare(machine.database_url, PARTITIONS).push_rate(batch, seconds / 2)
    return Figure(
        name=f"push-{batch}",
        what=f"push, batch {batch:,}, {connections} connections",
        unit="msg/s",
        measured=pushed / report["seconds"],
        bare=bare,
        details={"messages": pushed, "call_p50_ms": report["p50_ms"], "call_p99_ms": report["p99_ms"]},
        cores=cpu.cores,
    )


def stored(machine: Machine, queue: str) -> int:
    """Number of messages of the queue in the log."""
    with psycopg.connect(machine.database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id "
            "WHERE q.name = %s",
            (queue,),
        ).fetchone()
    return int(row[0]) if row else 0
