"""`python -m bench.jobs`: SQL jobs over a queue, with PostgreSQL, the broker and Spark on this machine.

Run by `make bench`. Every figure is of verified rows, and is shown with its limiting factor.
"""

import io
import time
from collections.abc import Callable
from itertools import count
from typing import Annotated, Any

import httpx2
import polars as pl
import psycopg
import typer

from bench.machine import Machine, running_machine
from bench.sheet import Sheet
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
    """Number of rows of a job, of the records in them, and their totals."""
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
    """Records a second while jobs catch up with a backlog, one after the other; the rows are verified."""
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
    """Records a second while a job emits a row for each record and window."""
    machine.settle()
    name = f"changes_{queue}"
    began = time.monotonic()
    job = create(machine, name, queue, f"WINDOW {window} EMIT CHANGES")
    rate = messages / (wait_for_records(machine, job, messages) - began)
    ((found, _, _),) = rows(machine, name)
    assert found == messages * rows_each, f"{found} rows, not {messages * rows_each}"
    return rate


def check(machine: Machine, name: str, records: int, amount: float) -> None:
    """Check that the rows of a job contain every record exactly once."""
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


def neighbours(machine: Machine, total: int) -> tuple[float, float]:
    """Median seconds from a push to its row, and of the pipeline's work, with `total` idle jobs."""
    with psycopg.connect(machine.database_url, options=SEARCH_PATH) as connection:
        statement = "SELECT count(*) FROM queenspark.streams WHERE name LIKE 'idle%'"
        (there,) = connection.execute(statement).fetchone() or (0,)
    for first in range(there, total, 50):
        sql(
            machine,
            ";".join(
                f"CREATE STREAM idle_{n} AS SELECT user, SUM(amount * {n}) AS total FROM idle_s GROUP BY user"
                f" WINDOW TUMBLING({1 + n}s)"
                for n in range(first, min(first + 50, total))
            ),
        )
    delays, work = [], []
    with psycopg.connect(machine.database_url, autocommit=True, options=SEARCH_PATH) as connection:
        for number in range(30):
            name = f"p{number}-{total}"
            began = time.monotonic()
            item = {"queue": "lone", "payload": {"user": name, "amount": 1.0}}
            post(machine, "/api/v1/push", {"items": [item]})
            while not connection.execute(LAST, {"row": f'{{"user":"{name}"%'}).fetchone():
                time.sleep(0.005)
            delays.append(time.monotonic() - began)
            (seconds,) = connection.execute("SELECT sum(seconds) FROM queenspark.progress").fetchone() or (0,)
            work.append(float(seconds))
    return sorted(delays)[len(delays) // 2], sorted(work)[len(work) // 2]


LAST = """SELECT 1 FROM queenspark.messages m JOIN queenspark.streams s ON s.queue_id = m.queue_id
WHERE s.name = 'lone_job' AND m.payload LIKE %(row)s"""


def pops(machine: Machine, seconds: float, until: Callable[[], bool] | None = None) -> list[float]:
    """Return the seconds of each push and pop on a queue that no job reads, until a time or a condition."""
    found = []
    over = time.monotonic() + seconds
    with httpx2.Client(base_url=machine.url, timeout=60.0) as client:
        while time.monotonic() < over and not (until is not None and until()):
            began = time.monotonic()
            body = {"items": [{"queue": "other", "payload": 1}]}
            client.post("/api/v1/push", json=body).raise_for_status()
            popped = client.get("/api/v1/pop/queue/other", params={"autoAck": "true", "wait": "true"})
            popped.raise_for_status()
            assert popped.json()["messages"]
            found.append(time.monotonic() - began)
            time.sleep(0.01)
    return sorted(found)


def during_catch_up(machine: Machine, queue: str, messages: int) -> tuple[list[float], list[float]]:
    """The same while idle, and while a job with changes catches up with a backlog."""
    post(machine, "/api/v1/configure", {"queue": "other"})
    pops(machine, 3.0)
    idle = pops(machine, 20.0)
    job = create(machine, "catching_up", queue, "WINDOW TUMBLING(1m) EMIT CHANGES")

    def is_done() -> bool:
        with psycopg.connect(machine.database_url, options=SEARCH_PATH) as connection:
            statement = "SELECT coalesce(sum(records), 0) FROM queenspark.stream_stats WHERE stream_id = %s"
            (records,) = connection.execute(statement, (job,)).fetchone() or (0,)
        return bool(records >= messages)

    checks = count(1)
    busy = pops(machine, 300.0, lambda: next(checks) % 20 == 0 and is_done())
    return idle, busy


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


def _p99(found: list[float]) -> float:
    return found[int(len(found) * 0.99)]


def main(
    messages: Annotated[int, typer.Option(help="Size of the backlog.")] = MESSAGES,
    some: Annotated[int, typer.Option(help="Size of the backlog where each record gives a row.")] = CHANGES,
) -> None:
    """Measure and print."""
    sheet = Sheet("SQL jobs on this machine, with PostgreSQL, the broker and Spark on the same cores")
    row = sheet.row
    with (
        running_machine() as machine,
        sheet.progress.status("measuring jobs"),
        running_pipeline(machine),
    ):
        for queue, size in (("backlog", messages), ("some", some), ("few", 5_000), ("lone", 0), ("idle", 0)):
            fill(machine, queue, size, 16, PAYLOAD)
            sql(machine, SCHEMA.format(queue=queue))
        sql(machine, "CREATE STREAM lone_job AS SELECT user, amount FROM lone_s")
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
        idle, busy = during_catch_up(machine, "some", some)
        what = "push and pop on another queue while a job with changes catches up, p99"
        row(what, f"{1000 * _p99(busy):.0f} ms", f"idle: {1000 * _p99(idle):.0f} ms", "twice")
        for total in (0, 10, 100, 1_000):
            delay, work = neighbours(machine, total)
            what = f"from a push to its row, with {total:,} idle jobs"
            row(what, f"{1000 * delay:.0f} ms", f"work: {1000 * work:.0f} ms", "as alone")
    sheet.show()


if __name__ == "__main__":
    typer.run(main)
