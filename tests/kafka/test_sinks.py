"""CREATE SINK … FROM a stream into a topic, without Spark: rows at least once, with their ids."""

import json
from functools import partial

import pyarrow as pa
import pytest

from queenspark.pipeline.external.kafka_sink import _write
from queenspark.store.pipeline import PipelineStore
from tests.external.sinks import LocalSink
from tests.kafka.topics import Topics


def test_rows_of_a_stream_are_records_with_keys_and_ids(topics: Topics) -> None:
    topic = topics.create(partitions=2)
    topics.run(f"create stream {{s}} (n bigint, price decimal(10, 2)) with (queue = '{topics.name('q')}')")
    for number in range(20):
        topics.push("q", [{"n": number, "price": 1.5}], partition=f"p{number % 3}")
    topics.push("q", [{"n": "x"}])
    options = f"connector = 'kafka', brokers = '{topics.kafka.brokers}', topic = '{topic}'"
    (made,) = topics.run(f"create sink {{out}} from {{s}} with ({options}, kafka.sasl.password = 'hush')")
    assert "hush" not in made["statement"]
    (shown,) = topics.run("show sinks")
    assert "hush" not in str(shown)
    assert "hush" not in str(topics.job("out"))
    assert "hush" not in str(topics.run("describe extended {out}"))
    topics.run(f"create or replace sink {{out}} from {{s}} with ({options})")

    with PipelineStore(topics.database_url) as store:
        (definition,) = [row for row in store.wanted_jobs() if row.body.name == topics.name("out")]
    query = LocalSink(topics.database_url, definition, max_rows=7)
    query.drain()
    query.close()
    assert definition.body.writes is not None
    write = partial(_write, definition.body.writes.options)
    packed = [pa.array(frame["rows"].tolist(), pa.binary()) for frame in query.outputs]
    batches = [pa.RecordBatch.from_pydict({"rows": rows}) for rows in packed]
    assert sum(batch["written"][0].as_py() for batch in write(iter(batches))) == 20
    found = topics.consume("t")
    rows = {json.loads(message.value() or b"")["n"]: message for message in found}
    assert sorted(rows) == list(range(20))
    for number, message in rows.items():
        headers = dict(message.headers() or [])
        assert message.key() == f"p{number % 3}".encode()
        assert message.value() == f'{{"n":{number},"price":1.50}}'.encode()
        assert headers["_version"] == b"2"
    assert len({dict(message.headers() or [])["queenspark-id"] for message in found}) == 20
    assert topics.job("out")["dead"] == 1


def test_settings_of_librdkafka_are_passed_on_by_a_sink_of_a_query(topics: Topics) -> None:
    topic = topics.create()
    topics.run(topics.source("n bigint"))
    options = f"connector = 'kafka', brokers = '{topics.kafka.brokers}', topic = '{topic}'"
    given = f"{options}, kafka.linger.ms = '5', kafka.ssl.key.password = 'hush', on_error = 'skip'"
    (made,) = topics.run(f"create sink {{out}} as select n from {{s}} with ({given})")
    assert "`kafka.linger.ms` = '5'" in made["statement"]
    shown = [made, topics.job("out"), topics.run("show sinks; describe {out}; describe extended {out}")]
    assert "hush" not in str(shown)
    with PipelineStore(topics.database_url) as store:
        (definition,) = [row for row in store.wanted_jobs() if row.body.name == topics.name("out")]
    assert definition.body.writes is not None
    assert definition.body.writes.options["kafka.linger.ms"] == "5"
    assert definition.body.writes.options["kafka.ssl.key.password"] == "hush"
    refused = topics.refused(
        f"create sink {{o}} as select n from {{s}} with ({options}, kafka.nonsense = '1')"
    )
    assert "the option kafka.nonsense cannot be set" in refused


@pytest.mark.parametrize(("name", "value"), [("max.in.flight", "10"), ("retries", "0")])
def test_settings_that_the_producer_rejects_are_refused(topics: Topics, name: str, value: str) -> None:
    topic = topics.create()
    topics.run(f"create stream {{s}} (n bigint) with (queue = '{topics.name('q')}')")
    options = f"connector = 'kafka', brokers = '{topics.kafka.brokers}', topic = '{topic}'"
    reason = topics.refused(f"create sink {{o}} from {{s}} with ({options}, kafka.{name} = '{value}')")
    assert reason.startswith("librdkafka rejected the options kafka.…: ")
    assert name in reason


def test_the_topic_of_a_sink_must_exist(real_topics: Topics) -> None:
    real_topics.run(f"create stream {{s}} (n bigint) with (queue = '{real_topics.name('q')}')")
    options = f"connector = 'kafka', brokers = '{real_topics.kafka.brokers}', topic = 'no_such_topic'"
    assert "no topic no_such_topic" in real_topics.refused(f"create sink {{o}} from {{s}} with ({options})")
