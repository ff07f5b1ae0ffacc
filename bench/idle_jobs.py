"""`python -m bench.idle_jobs`: the cost of a batch with idle jobs, without Spark.

The source, the processor and the sink of the streams query run in this process, with two buckets. Prints
the processor time of this process for a batch: one message and the row that a job computes from it.
"""

import cProfile
import pstats
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tests.broker_process import Broker
from tests.jobs.system import Jobs
from tests.postgres_servers import PostgresServer, temporary_postgres

BATCHES = 15


def create(jobs: Jobs, first: int, upto: int) -> None:
    """Jobs with windows of different lengths, each with a window that is sealed and can be revised."""
    for begin in range(first, upto, 100):
        jobs.sql(
            ";".join(
                f"CREATE STREAM idle_{n} AS SELECT user, SUM(amount * {n}) AS total FROM idle_s GROUP BY user"
                f" WINDOW TUMBLING({1 + n}s) WITH (keep = '1d')"
                for n in range(begin, min(begin + 100, upto))
            )
        )


def measure(jobs: Jobs, profile: cProfile.Profile | None = None) -> float:
    """Seconds of processor time for a batch, the median."""
    found = []
    for _ in range(BATCHES):
        jobs.api.push("lone", {"user": "u", "amount": 1.0})
        time.sleep(0.05)
        if profile is not None:
            profile.enable()
        began = time.process_time()
        batches = 0
        while batches == 0:
            batches = jobs.drain()
        found.append((time.process_time() - began) / (batches + 1))
        if profile is not None:
            profile.disable()
    return sorted(found)[len(found) // 2]


def main(
    jobs_each: Annotated[str, typer.Option(help="Numbers of idle jobs.")] = "0,10,100,1000",
    profiled: Annotated[
        bool, typer.Option("--profile", help="Show where the time goes, with most jobs.")
    ] = False,
) -> None:
    """Measure and print."""
    with (
        TemporaryDirectory() as folder,
        temporary_postgres(durable=False) as postgres,
        PostgresServer(postgres).database() as url,
    ):
        broker = Broker(url, Path(folder) / "broker.log")
        jobs = Jobs(broker.url, url)
        for queue in ("lone", "idle"):
            jobs.sql(f"CREATE STREAM {queue}_s (user STRING, amount DOUBLE) WITH (queue = '{queue}')")
        jobs.sql("CREATE STREAM lone_job AS SELECT user, amount FROM lone_s")
        there = 0
        for total in map(int, jobs_each.split(",")):
            create(jobs, there, total)
            there = total
            jobs.api.push("idle", *({"user": f"u{n}", "amount": 1.0} for n in range(5)))
            jobs.drain()
            measure(jobs)
            print(f"{total:>6,} idle jobs: {1000 * measure(jobs):.1f} ms a batch", flush=True)
        if profiled:
            profile = cProfile.Profile()
            measure(jobs, profile)
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        jobs.close()
        broker.stop()


if __name__ == "__main__":
    typer.run(main)
