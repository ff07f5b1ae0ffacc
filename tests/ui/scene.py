"""A small shop that lives without Spark: windows are sealed by the store, as the pipeline seals them.

`python -m tests.ui.scene PORT` runs it with a PostgreSQL and a broker of its own until Ctrl-C, to look at the
dashboard while it is changed.
"""

import json
import math
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from queenspark.store.migrate import migrate
from tests.broker_process import Broker
from tests.database import connect
from tests.postgres_servers import temporary_postgres
from tests.streams.sealing import Sealed
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api, Json
from tests.wire.sql import FAILURE, Sql

USERS = (
    "anna", "ben", "chloé", "dmitri", "elif", "farid", "grace", "hiro", "ines", "jonas", "kavya", "liam",
    "mei", "noor", "oskar", "priya",
)  # fmt: skip
WINDOW_US = 10_000_000
GRACE_US = 3_000_000
HISTORY = 90
"""Windows of each key that lie in the past."""

LEADER = "demo-host:4242:0a1b2c3d"
REPORT = {
    "batch": 812, "batchSeconds": 0.42, "inputRowsPerSecond": 180.0, "processedRowsPerSecond": 211.0,
    "backpressure": 0.85, "state": "running", "stateBytes": 7_400_000,
}  # fmt: skip


class Scene:
    """The shop: `fill` gives it a past, and each `step` lets it go on."""

    def __init__(self, api: Api, database_url: str) -> None:
        self.api = api
        self.database_url = database_url
        self.random = random.Random(7)
        self.shopping = StreamApi(api, database_url)
        self.shopping.name, self.shopping.namespace, self.shopping.queue = "shopping", "shop", "clicks"
        self.totals = StreamApi(api, database_url)
        self.totals.name, self.totals.namespace, self.totals.queue = "totals", "shop", "purchases"
        self.opened: dict[str, list[Any]] = {}
        self.sealed = 0
        self.records = 0
        self.leased: list[tuple[float, str, Json]] = []
        self.sealed_to = 0

    def close(self) -> None:
        """Close the connections."""
        self.shopping.close()
        self.totals.close()

    def fill(self) -> None:
        """Give the shop a past."""
        api = self.api
        api.configure("purchases", namespace="shop", leaseTime=60)
        api.configure("emails", namespace="mail", retryLimit=1, retryDelay=0)
        tumbling = {"window_duration_ms": 10_000, "window_grace_period_ms": 3_000, "partitioned": True}
        self.shopping.define(**tumbling)
        self.totals.define(
            **{**tumbling, "partitioned": False}, aggregates={"total": "sum(CAST(data.amount AS DOUBLE))"}
        )
        self._lead()
        self.push()
        self._messages()
        self._history()
        self._jobs()
        self.seal()
        self._samples()

    def step(self) -> None:
        """Simulate one second: push messages, seal windows, run consumers."""
        self._lead()
        self.push()
        self.seal()
        self.consume()

    # The parts of a step

    def push(self) -> None:
        """Push clicks and purchases of some users."""
        users = self.random.sample(USERS, 9)
        clicks = self.shopping
        for user in users[:5]:
            found = clicks.push({"page": self.random.choice(["tea", "cups", "pots"])}, partition=user)
            self.opened.setdefault(user, []).extend(found)
        items = [
            {"queue": "purchases", "partition": user, "payload": {"amount": self.random.randint(5, 90)}}
            for user in users
        ]
        response = self.api.push_items(items)
        assert response.status_code == 201

    def seal(self, now_us: int | None = None) -> None:
        """Seal the windows whose grace is over, and say which are open."""
        now = time.time_ns() // 1000 if now_us is None else now_us
        closed = (now - GRACE_US) // WINDOW_US * WINDOW_US
        windows: list[Sealed] = []
        first: tuple[int, int] | None = None
        still_open: set[tuple[str, int]] = set()
        for user, records in self.opened.items():
            by_start: dict[int, list[Any]] = {}
            for record in records:
                by_start.setdefault(record.created_us // WINDOW_US * WINDOW_US, []).append(record)
            kept = []
            for start, inside in sorted(by_start.items()):
                if start + WINDOW_US <= closed:
                    windows.append(
                        self.shopping.over(inside, key=user, start_us=start, end_us=start + WINDOW_US)
                    )
                else:
                    kept += inside
                    still_open.add((user, start))
            self.opened[user] = kept
            for record in kept:
                first = min(first or record.position, record.position)
        self.sealed += len(windows)
        if windows and self.random.random() < 0.5:
            again = self.random.choice(windows)
            windows.append(
                Sealed(again.key, again.start_us, again.end_us, again.sources, again.count, revision=2)
            )
        ((end,),) = self.shopping.run(
            "SELECT max(ARRAY[txid, id]) FROM queenspark.messages WHERE window_end IS NULL"
        )
        state = json.dumps({
            "txid": end[0], "id": end[1], "tick": now - 200_000, "seq": 1_000_000, "seconds": 0.4,
        })  # fmt: skip
        totals = []
        if closed > self.sealed_to:
            totals.append(Sealed("__GLOBAL__", closed - WINDOW_US, closed, count=40, values='{"total": 812}'))
            self.sealed_to = closed
        of_totals = {"stream": self.totals.id, "version": 1, "watermark_us": closed, "windows": len(totals)}
        self.totals.seal(*totals, stats=[of_totals], state=state)
        stats: Json = {
            "stream": self.shopping.id, "version": 1, "watermark_us": closed, "records": 5,
            "windows": len(windows), "open_windows": len(still_open),
        }  # fmt: skip
        if first is not None:
            stats |= {"open_txid": first[0], "open_id": first[1]}
        self.shopping.seal(*windows, stats=[stats], state=state)

    def consume(self) -> None:
        """Two groups take windows; the one reports them, the other fails now and then."""
        now = time.monotonic()
        for due, group, window in [each for each in self.leased if each[0] <= now]:
            self.leased.remove((due, group, window))
            fails = group == "fraud" and window["key"] in ("dmitri", "ines", "noor")
            with suppress(AssertionError):  # its lease is over
                if fails and self.random.random() < 0.2:
                    self.api.ack(window, "dlq", consumerGroup=group, error="amount is not a number: 'twelve'")
                elif fails and self.random.random() < 0.4:
                    self.shopping.ack(window, False, error="model server answered with 503")
                else:
                    self.shopping.ack(window)
        bought = self.api.pop("purchases", consumerGroup="ledger", batch=100, partitions=20)
        if bought.status_code == 200:
            self.api.complete(bought.json()["messages"], "ledger")
        for group, most in (("reports", 12), ("fraud", 6)):
            response = self.shopping.try_poll(group, maxWindows=most, consumerId=f"{group}-worker-1")
            if response.status_code == 200:
                for window in response.json()["windows"]:
                    self.leased.append((now + self.random.uniform(0.5, 5), group, window))

    # The past

    def _lead(self) -> None:
        self.shopping.run(
            "UPDATE queenspark.pipeline SET holder = %s, expires_at = clock_timestamp() + interval '1 hour',"
            " epoch = 0",
            LEADER,
        )
        self.shopping.run(
            "INSERT INTO queenspark.pipeline_stats (key, value) VALUES ('streams', %s)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = clock_timestamp()",
            json.dumps(REPORT),
        )
        for name in (LEADER, "other-host:977:99ff00aa"):
            self.shopping.run(
                "INSERT INTO queenspark.processes (name, kind, version) VALUES (%s, 'pipeline', '0.1.0')"
                " ON CONFLICT (name) DO UPDATE SET seen_at = clock_timestamp()",
                name,
            )

    def _messages(self) -> None:
        api = self.api
        for number in range(40):
            api.push("emails", {"to": f"user{number}@example.org", "subject": "Your order"}, partition="out")
        taken = api.take("emails", consumerGroup="mailer", batch=20)
        for number, message in enumerate(taken):
            status = "dlq" if number % 3 == 0 else "completed"
            api.ack(message, status, consumerGroup="mailer", error="mailbox does not exist")
        trace = {name: taken[1][name] for name in ("transactionId", "partitionId")}
        api.post("/api/v1/traces", {**trace, "data": {"smtp": "250 OK"}, "traceNames": ["delivery"]})

    def _history(self) -> None:
        now = time.time_ns() // 1000
        newest = (now - GRACE_US) // WINDOW_US * WINDOW_US
        windows = []
        for number in range(HISTORY, 0, -1):
            start = newest - number * WINDOW_US
            for rank, user in enumerate(USERS):
                if self.random.random() < 0.97 - rank * 0.035:
                    windows.append(Sealed(user, start, start + WINDOW_US, count=self.random.randint(1, 30)))
        self.shopping.seal(*windows)
        self.totals.seal(
            *(
                Sealed(
                    "__GLOBAL__", newest - n * WINDOW_US, newest - (n - 1) * WINDOW_US, count=200,
                    values=json.dumps({"total": 900 + n}),
                )
                for n in range(HISTORY, 0, -1)
            )
        )  # fmt: skip
        self.sealed_to = newest
        # Both groups begin a little behind.
        for group, behind in (("reports", 5), ("fraud", 12)):
            self.shopping.poll(group)
            self.shopping.seek((newest - behind * WINDOW_US) / 1e6, group)
        # They have acked the windows before, not skipped them.
        self.shopping.run(
            "UPDATE queenspark.groups SET skip_until = NULL WHERE queue_id = %s", self.shopping.queue_id
        )
        self.api.post("/api/v1/stream/poll", {"streamName": "totals", "consumerGroup": "mail", "timeout": 0})
        window = self.shopping.poll("fraud", consumerId="fraud-worker-2")
        for _ in range(5):
            self.shopping.ack(window, False, error="amount is not a number: 'twelve'")
            self.shopping.end_waits()
            if any(self.api.read("/api/v1/dlq", consumerGroup="fraud")["messages"]):
                break
            window = self.shopping.poll("fraud", consumerId="fraud-worker-2")
        note = {"stream": self.shopping.id, "version": 1, "key": "anna", "txid": 1, "id": 1}
        self.shopping.seal(
            late=[{**note, "time_us": now - 60_000_000, "closed_us": now - 20_000_000, "dropped": True}],
            dead=[{**note, "key": "ben", "reason": "data.amount is not a number"}],
            stats=[{"stream": self.shopping.id, "version": 1, "records": 20_000, "windows": len(windows),
                    "late": 1, "dropped": 1, "dead": 1, "watermark_us": newest}],
        )  # fmt: skip

    def _jobs(self) -> None:
        sql = Sql(self.api)
        sql(
            "CREATE STREAM big_orders AS SELECT _partition AS customer, amount FROM purchases"
            " WHERE amount > 50;"
            "CREATE STREAM minutes AS SELECT COUNT(*) AS n, SUM(amount) AS total FROM purchases"
            " WINDOW TUMBLING(1m);"
            "CREATE STREAM rejected AS SELECT amount FROM purchases WHERE amount < 0; PAUSE JOB rejected;"
            "CREATE STREAM risky AS SELECT amount FROM purchases WHERE amount > 80"
        )
        error = "division by zero in risk_score at customer 'dmitri'"
        self.shopping.run(FAILURE, 0, 0, 0, error, sql.stream("risky")[0])
        self.shopping.run(
            "INSERT INTO queenspark.stream_rates SELECT id, 12.4, 12.1, 3.2, 0.02, 0.9"
            " FROM queenspark.streams WHERE name NOT IN ('rejected', 'risky') ON CONFLICT DO NOTHING"
        )

    def _samples(self) -> None:
        ((sealed,),) = self.shopping.run("SELECT sum(windows)::bigint FROM queenspark.stream_stats")
        rows = []
        for step in range(720, -1, -1):
            # A calm wave, as a shop has it.
            wave = 1 + 0.4 * math.sin(step / 40) + 0.15 * math.sin(step / 7)
            pushed = max(0, int(50 * wave + self.random.gauss(0, 4)))
            rows.append((
                step * 5, pushed, int(pushed * 1.1), int(pushed * 1.02), int(self.random.random() < 0.05),
                int(wave * 9), int(sealed) - step * 9, int(18 + 6 * wave), int(60 + 50 * wave),
                7 if step > 60 else 8, 0.3 + 0.1 * wave, 0.3 + 0.2 * wave, 200 * wave, 0.6 + 0.2 * wave,
                int(5e6 + 2e6 * wave),
            ))  # fmt: skip
        with connect(self.database_url) as connection, connection.cursor() as cursor:
            cursor.execute("DELETE FROM queenspark.samples")  # of the broker, while the shop was filled
            cursor.executemany(
                "INSERT INTO queenspark.samples SELECT date_bin('5 seconds', clock_timestamp()"
                " - %s * interval '1 second', 'epoch'), 'history', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
                " %s, %s, %s, %s ON CONFLICT DO NOTHING",
                rows,
            )


def main(port: int) -> None:
    """Run the shop until Ctrl-C."""
    with TemporaryDirectory() as folder, temporary_postgres(durable=False) as postgres:
        migrate(postgres.url)
        broker = Broker(postgres.url, Path(folder) / "broker.log", port=port)
        try:
            with Api(broker.url, postgres.url) as api:
                scene = Scene(api, postgres.url)
                scene.fill()
                sys.stdout.write(f"the shop is open: {broker.url}\n")
                sys.stdout.flush()
                while True:
                    scene.step()
                    time.sleep(1)
        finally:
            broker.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
