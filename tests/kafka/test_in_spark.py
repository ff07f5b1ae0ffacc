"""Jobs over Kafka in Spark: the broker of Kafka and the pipeline are killed, and every row is there once."""

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.broker_process import Broker
from tests.external.sinks import listed_files
from tests.kafka.broker import Kafka, KafkaBroker
from tests.kafka.test_source import COLUMNS, MINUTES, click, clicks, expected, totals
from tests.kafka.topics import DAY, Record, Topics
from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.pipeline_process import PipelineProcess

pytestmark = [pytest.mark.crash, pytest.mark.long, pytest.mark.timeout(1200)]
EXAMPLES = Path(__file__).parents[2] / "examples" / "kafka"


class Victim(Topics):
    """The system, whose pipeline reads in small batches and is there to be killed."""

    process: PipelineProcess

    def count(self, topic: str) -> int:
        """The number of records of a topic."""
        return len(self.consume(topic))

    def runs(self, statement: str) -> None:
        """Run a statement whose names have no tag."""
        self.sql(statement)


@pytest.fixture(scope="module")
def victim(
    system_postgres: PostgresServer, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("kafka-victim")
    with system_postgres.database() as url:
        broker = Broker(url, folder / "broker.log")
        found = Victim(broker.url, url)
        found.kafka = kafka
        found.process = PipelineProcess(url, folder / "pipeline", spark_max_rows=500)
        found.process.start()
        found.begin()
        yield found
        found.process.kill()
        found.close()
        broker.stop()


def ids(topics: Topics, name: str) -> list[Any]:
    return [row.data["n"] for row in topics.rows(name)]


def archived(folder: Path) -> list[int]:
    """The numbers in the files that Spark has committed to a folder."""
    if not (folder / "v1" / "_spark_metadata").exists():
        return []
    return sorted(n for path in listed_files(folder / "v1") for n in pl.read_parquet(path)["n"].to_list())


def test_every_row_once_after_any_kill(victim: Victim, tmp_path: Path, full_size: bool) -> None:
    """Into queues and into files, while Kafka and the pipeline are killed in turn, then together."""
    rounds = 6 if full_size else 3
    partitions = 10 if victim.kafka.is_real else 4
    chance = random.Random(13)
    victim.create(partitions=partitions)
    records = clicks(1000 * (rounds + 1), partitions)
    victim.produce("t", records[:1000])
    victim.run(
        victim.source(COLUMNS, kafka__ssl__key__password="tiger77")
        + f"create stream {{copy}} as select n, k from {{s}}; create stream {{minutes}} as {MINUTES};"
        + "create sink {files} as select n, k from {s}"
        + f" with (connector = 'files', path = '{tmp_path}', partition_by = 'k')"
    )
    for number in range(rounds):
        before = len(ids(victim, "copy")), len(archived(tmp_path))
        wait_until(
            lambda before=before: (
                len(ids(victim, "copy")) > before[0] and len(archived(tmp_path)) > before[1]
            ),  # type: ignore[misc]
            within=300,
        )
        time.sleep(chance.uniform(0, 2))
        if number % 3 != 1:
            victim.process.kill()
        if number % 3 != 0 and isinstance(victim.kafka, KafkaBroker):
            victim.kafka.kill()
            victim.kafka.start()
        victim.produce("t", records[1000 * (number + 1) : 1000 * (number + 2)])
        if number % 3 != 1:
            victim.process.start()
    done = wait_until(
        lambda: len(ids(victim, "copy")) >= len(records) and len(archived(tmp_path)) >= len(records),
        within=300,
    )
    assert done, victim.process.log()
    assert sorted(ids(victim, "copy")) == archived(tmp_path) == list(range(len(records)))
    done = wait_until(lambda: totals(victim.data("minutes")) == expected(records), within=300)
    assert done, victim.process.log()
    revisions = Counter((row.id, row.partition) for row in victim.rows("minutes"))
    assert max(revisions.values()) == 1
    assert victim.job("copy")["run"]["partitions"] == partitions
    logs = [path for path in victim.process.folder.rglob("*.log") if path.is_file()]
    assert len(logs) > 1
    assert not [path for path in logs if "tiger77" in path.read_text(errors="replace")]
    victim.run("drop stream {copy}; drop stream {minutes}; drop sink {files}; drop source {s}")


def test_every_row_is_written_at_least_once_after_any_kill(victim: Victim, full_size: bool) -> None:
    """To topics, while the pipeline and Kafka are killed in turn, then together."""
    victim.begin()
    rounds = 6 if full_size else 3
    chance = random.Random(29)
    victim.create(partitions=4)
    for topic in ("out", "sums"):
        victim.create(topic, partitions=3)
    records = [
        click(n, key, n // 4, key % 4, DAY + 250 * n)
        for n, key in enumerate(chance.choices(range(9), k=1500 * (rounds + 1)))
    ]
    victim.produce("t", records[:1500])
    sink = f"connector = 'kafka', brokers = '{victim.kafka.brokers}', topic = '{{}}'".format
    victim.run(
        victim.source(COLUMNS, key_in_one_partition="true")
        + "create sink {rows} as select n, k from {s}"
        + f" with ({sink(victim.name('out'))}, partition_by = 'k');"
        + f"create sink {{sums}} as {MINUTES} with ({sink(victim.name('sums'))})"
    )
    for number in range(rounds):
        before = victim.count("out"), victim.count("sums")
        wait_until(
            lambda before=before: victim.count("out") > before[0] and victim.count("sums") > before[1],  # type: ignore[misc]
            within=300,
        )
        time.sleep(chance.uniform(0, 1))
        if number % 3 != 1:
            victim.process.kill()
        if number % 3 != 0 and isinstance(victim.kafka, KafkaBroker):
            victim.kafka.kill()
            victim.kafka.start()
        victim.produce("t", records[1500 * (number + 1) : 1500 * (number + 2)])
        if number % 3 != 1:
            victim.process.start()
    wanted = [each.value for each in records]
    done = wait_until(lambda: len(_written(victim)) == len(wanted), within=300)
    assert done, victim.process.log()
    by_key = {f"k{key}": [each["n"] for each in wanted if each["k"] == f"k{key}"] for key in range(9)}
    found = list(_written(victim).values())
    assert {key: [row["n"] for row in found if row["k"] == key] for key in by_key} == by_key
    # Only a record that is later than the last one closes its window.
    victim.produce("t", [click(0, key, 3599, key % 4, DAY + 3_600_000) for key in range(9)])
    sums = expected(records)
    done = wait_until(
        lambda: (
            {at: sum_ for at, sum_ in totals(list(_written(victim, "sums").values())).items() if at in sums}
            == sums
        ),
        within=300,
    )
    assert done, victim.process.log()
    victim.run("drop sink {rows}; drop sink {sums}; drop source {s}")


def test_rows_are_written_to_a_topic_with_their_keys(victim: Victim) -> None:
    victim.begin()
    victim.create(partitions=2)
    victim.create("out", partitions=2)
    victim.produce("t", clicks(500, 2))
    victim.run(
        victim.source(COLUMNS)
        + "create sink {out} as select n, k from {s} with (connector = 'kafka',"
        + f" brokers = '{victim.kafka.brokers}', topic = '{victim.name('out')}', partition_by = 'k')"
    )
    assert wait_until(lambda: len(_written(victim)) == 500, within=300), victim.process.log()
    assert {row["n"] for row in _written(victim).values()} == set(range(500))
    victim.run("drop sink {out}; drop source {s}")


def _written(topics: Topics, topic: str = "out") -> dict[bytes, dict[str, Any]]:
    """Rows of a sink by their ids, in the order in which they came first; all copies of one are equal."""
    found: dict[bytes, dict[str, Any]] = {}
    for message in topics.consume(topic):
        value = json.loads(message.value() or b"")
        assert message.key() == value["k"].encode()
        headers: dict[str, Any] = dict(message.headers() or [])
        assert found.setdefault(headers["queenspark-id"], value) == value
    return found


def test_examples(victim: Victim, tmp_path: Path) -> None:
    victim.create("orders", partitions=3)
    victim.produce("orders", [
        Record({"user": f"u{n % 2}", "amount": 1.5 * n, "at": f"2026-01-31T1{n // 4}:00:00Z"}, n % 3, DAY + n)
        for n in range(12)
    ])  # fmt: skip
    for path in sorted(EXAMPLES.glob("*.sql")):
        text = path.read_text().replace("localhost:9092", victim.kafka.brokers)
        text = text.replace("topic = 'orders'", f"topic = '{victim.name('orders')}'")
        text = re.sub(r"path = '[^']*'", f"path = '{tmp_path}'", text)
        victim.runs(text)

    def files() -> list[Path]:
        return list(tmp_path.glob("v1/day=2026-01-31/hour=12/*.parquet"))

    def is_archived() -> bool:
        try:
            return bool(files()) and pl.read_parquet(f"{tmp_path}/v1/**/*.parquet").height == 12
        except pl.exceptions.ComputeError:  # one of them is still being written
            return False

    assert wait_until(is_archived, within=300), victim.process.log()
    victim.tag = ""
    statement = "SELECT m.payload FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"

    def spending() -> dict[tuple[str, str], tuple[int, float]]:
        from tests.database import connect

        with connect(victim.database_url) as connection:
            found = connection.execute(
                f"{statement} WHERE q.name = 'kafka_spending' ORDER BY m.id"
            ).fetchall()
        rows = [json.loads(payload) for (payload,) in found]
        return {(row["user"], row["hour"][11:13]): (row["orders"], row["spent"]) for row in rows}

    wanted = {
        (f"u{user}", f"1{hour}"): (2, sum(1.5 * n for n in range(12) if n % 2 == user and n // 4 == hour))
        for user in range(2)
        for hour in range(3)
    }
    assert wait_until(lambda: spending() == wanted, within=300), (spending(), victim.process.log())
