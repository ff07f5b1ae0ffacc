"""`python -m bench.retention`: checks whether retention keeps up with ten times the rate of the soak.

Expired messages are inserted every second while a broker runs; the number of remaining rows must not grow.
"""

import time
from typing import Annotated

import psycopg
import typer

from bench.machine import Machine, running_machine
from bench.streams import FILL, post
from queenspark.store.functions import SEARCH_PATH

KEYS = 1_000
QUEUE = "swept"
SIZES = """SELECT (SELECT count(*) FROM queenspark.messages), n_dead_tup, pg_table_size(relid),
    pg_indexes_size(relid)
FROM pg_stat_user_tables WHERE schemaname = 'queenspark' AND relname = 'messages'"""


def main(
    rate: Annotated[int, typer.Option(help="Messages a second.")] = 30_000,
    seconds: Annotated[int, typer.Option(help="Duration in seconds.")] = 180,
) -> None:
    """Measure and print."""
    with running_machine() as machine:
        post(machine, "/api/v1/configure", {"queue": QUEUE, "options": {"retentionSeconds": 30}})
        left = insert(machine, rate, seconds)
        print(
            f"{rate * seconds:,} messages inserted, {left:,} left after the last round of retention",
            flush=True,
        )


def insert(machine: Machine, rate: int, seconds: int) -> int:
    """Insert at this rate; return the number of rows left two rounds of retention after the end."""
    with psycopg.connect(machine.database_url, autocommit=True, options=SEARCH_PATH) as connection:
        row = connection.execute("SELECT id FROM queenspark.queues WHERE name = %s", (QUEUE,)).fetchone()
        assert row is not None
        connection.execute(
            "INSERT INTO queenspark.partitions (queue_id, name)"
            " SELECT %s, 'k' || n FROM generate_series(0, %s - 1) n",
            (row[0], KEYS),
        )
        began = time.monotonic()
        for number in range(seconds):
            params = {
                "first": number * rate, "count": rate, "total": seconds * rate, "keys": KEYS,
                "queue_id": row[0], "span": 0,
            }  # fmt: skip
            connection.execute(FILL.replace("{payload}", """'{"n": 1}'"""), params)
            if number % 10 == 9:
                _tell(connection, number + 1, rate)
            time.sleep(max(0.0, began + number + 1 - time.monotonic()))
        took = time.monotonic() - began
        print(f"inserted at {rate * seconds / took:,.0f} /s", flush=True)
        time.sleep(60)
        return _tell(connection, seconds + 60, rate)


def _tell(connection: psycopg.Connection[tuple[int, ...]], second: int, rate: int) -> int:
    row = connection.execute(SIZES).fetchone()
    assert row is not None
    rows, dead, table, indexes = row
    print(
        f"{second:5} s  {rows:12,} rows ({rows / rate:.0f} s of messages)  {dead:10,} dead"
        f"  table {table / 1e6:,.0f} MB  indexes {indexes / 1e6:,.0f} MB",
        flush=True,
    )
    return rows


if __name__ == "__main__":
    typer.run(main)
