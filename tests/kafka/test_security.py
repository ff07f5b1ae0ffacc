"""Kafka over TLS, with users or client certificates: sources and sinks, and the errors of CREATE."""

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from queenspark.connectors.errors import WriteFailed
from queenspark.connectors.kafka.kafka_writer import KafkaRow, KafkaWriter
from queenspark.connectors.reader import ReadFailed
from queenspark.pipeline.external.kafka_sink import _write
from queenspark.store.pipeline import PipelineStore
from tests.access.certificates import Authority
from tests.external.sinks import LocalSink
from tests.kafka.broker import PASSWORDS, KafkaBroker
from tests.kafka.topics import Record, Topics, wait_until


@pytest.fixture
def broker(real_topics: Topics) -> KafkaBroker:
    """The broker of the topics."""
    assert isinstance(real_topics.kafka, KafkaBroker)
    return real_topics.kafka


def sasl(broker: KafkaBroker, user: str = "anna", mechanism: str = "PLAIN", **more: str) -> dict[str, str]:
    """Options for the listener that requires a user."""
    return {
        "brokers": broker.sasl,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.username": user,
        "kafka.sasl.password": PASSWORDS[user],
        "kafka.ssl.ca.location": str(broker.authority.file),
        **more,
    }


def tls(broker: KafkaBroker) -> dict[str, str]:
    """Options for the listener that requires a certificate."""
    certificate, key = broker.authority.issue("client")
    return {
        "brokers": broker.tls,
        "kafka.security.protocol": "ssl",
        "kafka.ssl.ca.location": str(broker.authority.file),
        "kafka.ssl.certificate.location": str(certificate),
        "kafka.ssl.key.location": str(key),
    }


def listed(options: dict[str, str]) -> str:
    return ", ".join(f"{name} = '{value}'" for name, value in options.items())


@pytest.mark.parametrize("kind", ["PLAIN", "SCRAM-SHA-512", "certificate"])
def test_a_source_and_a_sink_over_tls(real_topics: Topics, broker: KafkaBroker, kind: str) -> None:
    topics = real_topics
    given = tls(broker) if kind == "certificate" else sasl(broker, mechanism=kind)
    topics.create(partitions=2)
    out = topics.create("out")
    topics.produce("t", [Record({"n": n}, n % 2) for n in range(20)])
    shown = topics.run(topics.source(**given))
    shown += topics.run("create stream {copy} as select n from {s}")
    topics.run_job("copy")
    assert sorted(row["n"] for row in topics.data("copy")) == list(range(20))

    target = listed({"connector": "kafka", "topic": out, **given})
    shown += topics.run(f"create sink {{out}} as select n from {{s}} with ({target})")
    with PipelineStore(topics.database_url) as store:
        (definition,) = [row for row in store.wanted_jobs() if row.body.name == topics.name("out")]
    query = LocalSink(topics.database_url, definition)
    query.drain()
    query.close()
    assert definition.body.writes is not None
    write = partial(_write, definition.body.writes.options)
    packed = [pa.array(frame["rows"].tolist(), pa.binary()) for frame in query.outputs]
    batches = [pa.RecordBatch.from_pydict({"rows": rows}) for rows in packed]
    assert sum(batch["written"][0].as_py() for batch in write(iter(batches))) == 20
    found = [json.loads(message.value() or b"")["n"] for message in topics.consume("out")]
    assert sorted(found) == list(range(20))
    shown += topics.run("describe extended {s}; describe extended {out}; show sources; show sinks; show jobs")
    assert PASSWORDS["anna"] not in str(shown)


def refused(topics: Topics, given: dict[str, str]) -> str:
    """The error of CREATE SOURCE. That of CREATE SINK names the same broker, and no password is in them."""
    reason = topics.refused(topics.source("n bigint", **given))
    topics.run(f"create or replace stream {{from}} (n bigint) with (queue = '{topics.name('q')}')")
    target = listed({"connector": "kafka", "topic": topics.name("t"), **given})
    of_sink = topics.refused(f"create sink {{o}} from {{from}} with ({target})")
    assert of_sink.split(": ")[0] == reason.split(": ")[0]
    assert not [word for word in (*PASSWORDS.values(), "wrong99") if word in reason + of_sink]
    return reason


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password(real_topics: Topics, broker: KafkaBroker, mechanism: str) -> None:
    real_topics.create()
    given = sasl(broker, mechanism=mechanism, **{"kafka.sasl.password": "wrong99"})
    reason = refused(real_topics, given)
    assert reason.startswith(f"{broker.sasl}: access denied: ")
    assert "Authentication failed" in reason
    assert "kafka.sasl.password" in reason


def test_a_user_without_rights_on_the_topic(real_topics: Topics, broker: KafkaBroker) -> None:
    real_topics.create()
    reason = refused(real_topics, sasl(broker, "ben"))
    assert reason.startswith(f"{broker.sasl}: access denied: ")
    assert "authorization failed" in reason.lower()


def test_a_user_who_may_only_see_the_topic(real_topics: Topics, broker: KafkaBroker) -> None:
    """CREATE succeeds; then the job says why it cannot read or write."""
    topics = real_topics
    name = topics.create()
    topics.produce("t", [Record({"n": 1})])
    may_see = AclBinding(
        ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:ben", "*", AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    client = AdminClient({"bootstrap.servers": broker.brokers})
    client.create_acls([may_see])[may_see].result(20)
    given = sasl(broker, "ben")
    own = {key.removeprefix("kafka."): value for key, value in given.items() if key.startswith("kafka.")}
    ben = AdminClient({"bootstrap.servers": broker.sasl, **own})
    wait_until(lambda: ben.list_topics(name, timeout=5).topics[name].error is None)
    topics.run(topics.source("n bigint", **given) + "create stream {copy} as select n from {s}")
    with pytest.raises(ReadFailed, match=f"access to the topic {name} denied: .*authorization failed"):
        topics.run_job("copy")
    writer = KafkaWriter({"topic": name, **given})
    with pytest.raises(WriteFailed, match=f"writing to the topic {name} failed: .*authorization failed"):
        writer.write([KafkaRow("1", "k", "x")])


def test_a_mechanism_that_the_brokers_do_not_have(real_topics: Topics, broker: KafkaBroker) -> None:
    real_topics.create()
    reason = refused(real_topics, sasl(broker, mechanism="SCRAM-SHA-256"))
    assert reason.startswith(f"{broker.sasl}: access denied: ")
    assert "SCRAM-SHA-256" in reason


def test_an_authority_that_is_not_trusted(real_topics: Topics, broker: KafkaBroker, tmp_path: Path) -> None:
    real_topics.create()
    other = {"kafka.ssl.ca.location": str(Authority(tmp_path).file)}
    reason = refused(real_topics, sasl(broker, **other))
    assert reason.startswith(f"{broker.sasl}: TLS failed: ")
    assert "certificate verify failed" in reason
    assert "verify that ssl.ca.location is correctly configured" in reason


def test_a_missing_file_of_certificates(real_topics: Topics, broker: KafkaBroker) -> None:
    real_topics.create()
    reason = refused(real_topics, sasl(broker, **{"kafka.ssl.ca.location": "/nowhere/ca.pem"}))
    assert "kafka.ssl.ca.location is /nowhere/ca.pem, which cannot be read: No such file" in reason


def test_a_client_without_a_certificate(real_topics: Topics, broker: KafkaBroker) -> None:
    real_topics.create()
    given = {name: value for name, value in tls(broker).items() if "certificate" not in name}
    given.pop("kafka.ssl.key.location")
    reason = refused(real_topics, given)
    assert reason.startswith(f"{broker.tls}: TLS failed: ")
    assert "certificate" in reason


@pytest.mark.parametrize("protocol", ["plaintext", "sasl_plaintext"])
def test_no_tls_where_the_brokers_require_it(real_topics: Topics, broker: KafkaBroker, protocol: str) -> None:
    real_topics.create()
    reason = refused(real_topics, sasl(broker, **{"kafka.security.protocol": protocol}))
    assert reason.startswith(f"{broker.sasl} cannot be reached: ")
    assert f"kafka.security.protocol is {protocol}" in reason
    assert "TLS" in reason


def test_no_user_where_the_brokers_require_one(real_topics: Topics, broker: KafkaBroker) -> None:
    real_topics.create()
    reason = refused(real_topics, sasl(broker, **{"kafka.security.protocol": "ssl"}))
    assert "kafka.security.protocol is ssl" in reason
    assert "SASL" in reason


def test_tls_where_the_brokers_have_none(real_topics: Topics, broker: KafkaBroker) -> None:
    real_topics.create()
    reason = refused(real_topics, sasl(broker, brokers=broker.brokers))
    assert reason.startswith(f"{broker.brokers}: TLS failed: ")
    assert "kafka.security.protocol" in reason
