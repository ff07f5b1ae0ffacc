"""`python -m bench.jobs`: SQL jobs over a queue, with PostgreSQL, the broker and Spark on this machine.

Run by `make bench`. Every figure is of rows that were checked; beside it stands what sets its limit.
"""

import io
import sys
import time
from typing import Annotated, Any

import polars as pl
import psycopg
import typer
from rich.console import Console
from rich.table import Table

from bench.machine import Machine, running_machine
from bench.streams import fill, post, running_pipeline, wait_for_records, wait_until
from queenspark.sql.payload import Field, PayloadDecoder
from queenspark.sql.types import DOUBLE, STRING
from queenspark.store.functions import SEARCH_PATH

MESSAGES = 2_000_000
CHANGES = 500_000
KEYS = 5_000
RUNS = 3

# Amounts are quarters, so that sums of them are exact in any order.
PAYLOAD = f"""'{{"user":"u' || ((%(first)s + n)::bigint * 7919 %% {KEYS}) || '","amount":'
    || ((%(first)s + n)::bigint %% 1000) * 0.25 || ',"note":"nothing that anybody reads"}}'"""
SCHEMA = "CREATE STREAM {queue}_s (user STRING, amount DOUBLE) WITH (queue = '{queue}')"
SELECT = "SELECT user, SUM(amount) AS total, COUNT(*) AS n FROM {queue}_s GROUP BY user"


def amounts(messages: int) -> float:
    """The sum of all amounts."""
    return sum(number % 1000 for number in range(messages)) * 0.25


def sql(machine: Machine, statement: str) -> Any:
    """Statements that must succeed."""
    return post(machine, "/api/v1/sql", {"sql": statement})["results"]


def rows(machine: Machine, name: str) -> list[tuple[Any, ...]]:
    """How many rows a job has given, the records in them, and their totals."""
    statement = (
        "SELECT count(*), sum((payload::jsonb ->> 'n')::bigint), sum((payload::jsonb ->> 'total')::float8)"
        " FROM queenspark.messages WHERE queue_id = (SELECT id FROM queenspark.queues WHERE name = %s)"
    )
    with psycopg.connect(machine.database_url, options=SEARCH_PATH) as connection:
        return connection.execute(statement, (name,)).fetchall()


def create(machine: Machine, name: str, queue: str, clauses: str) -> int:
    """A job over a queue; its id."""
    sql(machine, f"CREATE STREAM {name} AS {SELECT.format(queue=queue)} {clauses}")
    with psycopg.connect(machine.database_url, options=SEARCH_PATH) as connection:
        row = connection.execute("SELECT id FROM queenspark.streams WHERE name = %s", (name,)).fetchone()
    assert row is not None
    return int(row[0])


def totals(machine: Machine, queue: str, messages: int) -> list[float]:
    """Records a second while jobs catch up with a backlog, one after the other; their rows are right."""
    rates = []
    for number in range(RUNS):
        machine.settle()
        began = time.monotonic()
        job = create(machine, f"totals_{number}", queue, "WINDOW TUMBLING(1m)")
        rates.append(messages / (wait_for_records(machine, job, messages) - began))
        statement = "SELECT sum(open_windows) = 0 FROM queenspark.stream_stats WHERE stream_id = %(stream)s"
        wait_until(machine, statement, "the sealing of all windows", stream=job)
        check(machine, f"totals_{number}", messages, amounts(messages))
    return sorted(rates)


def changes(machine: Machine, queue: str, messages: int, window: str, rows_each: int) -> float:
    """Records a second while a job gives a row for each record and window."""
    machine.settle()
    name = f"changes_{queue}"
    began = time.monotonic()
    job = create(machine, name, queue, f"WINDOW {window} EMIT CHANGES")
    rate = messages / (wait_for_records(machine, job, messages) - began)
    ((count, _, _),) = rows(machine, name)
    assert count == messages * rows_each, f"{count} rows, not {messages * rows_each}"
    return rate


def check(machine: Machine, name: str, records: int, amount: float) -> None:
    """The rows of a job have every record once."""
    ((_, counted, total),) = rows(machine, name)
    assert (counted, total) == (records, amount), f"{counted} records of {records}, {total} of {amount}"


def inserts(machine: Machine, rows_wanted: int) -> float:
    """Rows a second that PostgreSQL takes by COPY into the log, in transactions of the same size."""
    machine.settle()
    size = 10_000
    with psycopg.connect(machine.database_url, autocommit=True, options=SEARCH_PATH) as connection:
        (queue,) = connection.execute(
            "INSERT INTO queenspark.queues (name) VALUES ('bare') RETURNING id"
        ).fetchone() or (0,)
        (partition,) = connection.execute(
            "INSERT INTO queenspark.partitions (queue_id, name) VALUES (%s, 'p') RETURNING id", (queue,)
        ).fetchone() or (0,)
        began = time.monotonic()
        for first in range(0, rows_wanted, size):
            number = pl.int_range(first, first + size, eager=True)
            frame = pl.DataFrame({"id": number}).select(
                pl.lit(0).alias("x"), "id", pl.lit(partition).alias("i"), pl.lit("now").alias("c"),
                pl.lit(queue).alias("q"),
                pl.format("9:u{}:1790000000000:1790000060000:{}-{}", "id", "id", "id").alias("t"),
                pl.format('{{"user":"u{}","total":{},"n":{}}}', "id", "id", "id").alias("p"),
            )  # fmt: skip
            text = io.BytesIO()
            frame.write_csv(text, include_header=False, quote_style="non_numeric")
            with (
                connection.transaction(),
                connection.cursor() as cursor,
                cursor.copy(
                    "COPY queenspark.messages"
                    " (txid, id, partition_id, created_at, queue_id, transaction_id, payload)"
                    " FROM STDIN WITH (FORMAT csv)"
                ) as copy,
            ):
                copy.write(text.getvalue())
        return rows_wanted / (time.monotonic() - began)


def decoding(messages: int) -> float:
    """Payloads a second that are decoded to the two fields of the jobs, on one core."""
    texts = pl.Series(
        [
            f'{{"user":"u{n * 7919 % KEYS}","amount":{n % 1000 * 0.25},"note":"nothing that anybody reads"}}'
            for n in range(messages)
        ]
    )
    decoder = PayloadDecoder([Field(("user",), STRING), Field(("amount",), DOUBLE)])
    began = time.perf_counter()
    for first in range(0, messages, 100_000):
        decoder.columns(texts.slice(first, 100_000))
    return messages / (time.perf_counter() - began)


def main(
    messages: Annotated[int, typer.Option(help="Size of the backlog.")] = MESSAGES,
    some: Annotated[int, typer.Option(help="Size of the backlog where each record gives a row.")] = CHANGES,
) -> None:
    """Measure and print."""
    table = Table(title="SQL jobs on this machine, with PostgreSQL, the broker and Spark on the same cores")
    table.add_column("what")
    for heading in ("measured", "beside it", "aim"):
        table.add_column(heading, justify="right")
    console = Console(width=None if sys.stdout.isatty() else 120)
    progress = Console(stderr=True)

    def row(what: str, measured: str, beside: str, aim: str) -> None:
        table.add_row(what, measured, beside, aim)
        progress.print(f"{what}: {measured} {beside}")

    with (
        running_machine() as machine,
        progress.status("measuring jobs"),
        running_pipeline(machine),
    ):
        for queue, count in (("backlog", messages), ("some", some), ("few", 5_000)):
            fill(machine, queue, count, 16, PAYLOAD)
            sql(machine, SCHEMA.format(queue=queue))
        rates = totals(machine, "backlog", messages)
        what = f"totals by a key of the payload, {messages:,} messages, {KEYS:,} keys, final"
        measured = f"{rates[RUNS // 2]:,.0f} /s ({rates[0]:,.0f} to {rates[-1]:,.0f})"
        row(what, measured, f"decoding alone: {decoding(messages):,.0f} /s on one core", "300,000 /s")
        rate = changes(machine, "some", some, "TUMBLING(1m)", 1)
        bare = inserts(machine, some)
        what = f"the same with changes, a row for each of {some:,} records"
        row(what, f"{rate:,.0f} /s", f"COPY into the log: {bare:,.0f} rows/s", "60,000 /s")
        rate = changes(machine, "few", 5_000, "SLIDING(20m, 1m)", 20)
        what = "a row for each record and window: 5,000 records, 100,000 rows"
        row(what, f"{rate:,.0f} records/s", f"{20 * rate:,.0f} rows/s", "28,809 records/s")
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
