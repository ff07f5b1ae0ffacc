"""Messages popped and acked per second."""

from uuid import uuid4

from bench.bare import Bare
from bench.cpu import Cpu
from bench.figure import Figure
from bench.machine import Machine
from bench.push import PARTITIONS, stored
from bench.wrk import WrkError, run_wrk

BATCH = 100
CONSUMERS = 10
RATE_AT_MOST = 40_000
"""Messages a second that the backlog is large enough for."""


def measure_drain(machine: Machine, seconds: float) -> Figure:
    """Fill a queue, then let consumers of one group pop and ack it."""
    queue = f"drain-{uuid4().hex[:8]}"
    while stored(machine, queue) < seconds * RATE_AT_MOST:
        load = {"threads": 2, "connections": 4}
        run_wrk("push", machine.url, queue, 1000, PARTITIONS, uuid4().hex[:8], **load, seconds=2)
    backlog = stored(machine, queue)
    machine.settle()
    with Cpu(machine.broker_pid, machine.postgres_pid) as cpu:
        report = run_wrk(
            "drain",
            machine.url,
            queue,
            BATCH,
            "bench",
            threads=CONSUMERS,
            connections=CONSUMERS,
            seconds=seconds,
        )
    if report["failed"] or report["refused"] or not report["acked"]:
        raise WrkError(f"not everything was acked: {report}")
    return Figure(
        name="pop-ack",
        what=f"pop and ack, batch {BATCH}, {CONSUMERS} consumers",
        unit="msg/s",
        measured=report["acked"] / report["seconds"],
        bare=Bare(machine.database_url, PARTITIONS).pop_rate(BATCH, seconds / 2),
        details={
            "messages": report["acked"],
            "backlog": backlog,
            "mean_batch": round(report["acked"] / report["pops"], 1),
        },
        cores=cpu.cores,
    )
