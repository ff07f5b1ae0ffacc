"""Rows written to a topic: in order, acknowledged, with their ids."""

import pytest

from queenspark.connectors.kafka import kafka_writer
from queenspark.connectors.kafka.kafka_writer import KafkaRow, KafkaWriter, WriteFailed, write_rows
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
