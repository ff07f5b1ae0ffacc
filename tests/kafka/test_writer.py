"""Rows written to a topic: in order, acknowledged, with their ids."""

import time
from collections.abc import Iterator

import pytest

from queenspark.connectors.errors import WriteFailed
from queenspark.connectors.kafka import kafka_writer
from queenspark.connectors.kafka.kafka_writer import KafkaRow, KafkaWriter, write_rows
from tests.kafka.librdkafka import fail_for_good
from tests.kafka.topics import Topics


def test_rows_are_records_with_their_ids(topics: Topics) -> None:
    name = topics.create(partitions=3)
    writer = KafkaWriter({"brokers": topics.kafka.brokers, "topic": name})
    rows = [KafkaRow(f"1:1:{n}", f"k{n % 4}", f'{{"n":{n}}}', {"_version": "1"}) for n in range(200)]
    assert writer.write(rows) == 200
    write_rows({"brokers": topics.kafka.brokers, "topic": name}, [("1:1:x", None, None, {})])
    found = topics.consume("t")
    assert len(found) == 201
    by_key: dict[bytes | None, list[int]] = {}
    partitions: dict[bytes | None, set[int | None]] = {}
    for message in found:
        headers = dict(message.headers() or [])
        if message.value() is None:
            assert headers == {"queenspark-id": b"1:1:x"}
            continue
        number = int((message.value() or b"")[5:-1])
        assert headers == {"_version": b"1", "queenspark-id": f"1:1:{number}".encode()}
        by_key.setdefault(message.key(), []).append(number)
        partitions.setdefault(message.key(), set()).add(message.partition())
    assert by_key == {f"k{key}".encode(): list(range(key, 200, 4)) for key in range(4)}
    assert all(len(each) == 1 for each in partitions.values())


def test_a_row_that_is_too_large_fails_the_batch(topics: Topics) -> None:
    name = topics.create()
    writer = KafkaWriter({"brokers": topics.kafka.brokers, "topic": name})
    with pytest.raises(WriteFailed, match=f"topic {name} failed: .*too large"):
        writer.write([KafkaRow("1", "k", "x" * 2_000_000)])
    assert writer.write([KafkaRow("1", "k", "x")]) == 1


def test_brokers_that_are_away_fail_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_writer, "PATIENCE_SECONDS", 0.5)
    writer = KafkaWriter({"brokers": "127.0.0.1:1", "topic": "t"})
    with pytest.raises(WriteFailed, match="topic t failed: "):
        writer.write([KafkaRow("1", "k", "x")])


def test_a_slow_batch_fails_only_if_nothing_is_acknowledged(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topics.create()
    monkeypatch.setattr(kafka_writer, "PATIENCE_SECONDS", 1.0)

    def rows() -> Iterator[KafkaRow]:
        for number in range(20):
            time.sleep(0.1)
            yield KafkaRow(str(number), "k", "x")

    assert KafkaWriter({"brokers": topics.kafka.brokers, "topic": name}).write(rows()) == 20


def test_a_producer_with_a_fatal_error_is_replaced(topics: Topics) -> None:
    """Spark reuses its workers, so a retry of the batch would meet the same producer again and again."""
    name = topics.create()
    writer = KafkaWriter({"brokers": topics.kafka.brokers, "topic": name})
    assert writer.write([KafkaRow("1", "k", "x")]) == 1
    fail_for_good(kafka_writer._client(writer._options).producer)
    with pytest.raises(WriteFailed, match=f"topic {name} failed: "):
        writer.write([KafkaRow("2", "k", "x")])
    assert writer.write([KafkaRow("2", "k", "x")]) == 1
