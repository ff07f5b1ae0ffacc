"""Statements can give only harmless settings of librdkafka, and no secret is shown."""

from pathlib import Path

import pytest

from queenspark.connectors.checks import Unreachable
from queenspark.connectors.kafka.kafka_options import KafkaOptions
from queenspark.connectors.kafka.kafka_settings import ACCEPTED
from queenspark.sql.options import is_secret
from tests.kafka.librdkafka import settings
from tests.kafka.topics import Topics

#: They load libraries, run commands, read, write or send files, change the log, or override our settings.
_REJECTED = """
    plugin.library.paths ssl.providers ssl.engine.location ssl.engine.id interceptors open_cb socket_cb
    sasl.kerberos.kinit.cmd sasl.kerberos.keytab sasl.kerberos.principal
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
    sasl.oauthbearer.assertion.private.key.file offset.store.path offset.store.method
    debug log_level log.queue log_cb stats_cb error_cb statistics.interval.ms enabled_events
    internal.termination.signal topic.blacklist
    bootstrap.servers metadata.broker.list isolation.level enable.auto.commit auto.commit.enable
    auto.offset.reset enable.partition.eof group.instance.id group.protocol
    transactional.id enable.idempotence acks request.required.acks queuing.strategy
    test.mock.num.brokers test.mock.broker.rtt
    logger oauth_cb on_commit default.topic.config
"""
_WORDS = ("password", "passphrase", "secret", "token", "credential", "jaas", "private.key", "pem")


def of(name: str) -> KafkaOptions:
    return KafkaOptions.of({"brokers": "b", "topic": "t", f"kafka.{name}": "x"})


@pytest.mark.parametrize("name", _REJECTED.split())
def test_dangerous_settings_are_rejected_by_name(name: str) -> None:
    with pytest.raises(Unreachable, match=f"^the option kafka.{name} cannot be set: "):
        of(name)


def test_the_reason_is_given() -> None:
    with pytest.raises(Unreachable, match="it would run code on the server"):
        of("ssl.providers")
    with pytest.raises(Unreachable, match=r"did you mean sasl\.password\?"):
        of("sasl.pasword")


def test_every_accepted_setting_exists_and_only_those_of_tls_are_files(tmp_path: Path) -> None:
    known = settings(tmp_path)
    assert len(known) > len(ACCEPTED)
    assert set(known) >= ACCEPTED
    for name in ACCEPTED:
        of(name)
    files = {name for name in ACCEPTED if known[name].strip().startswith(("Path", "File"))}
    tls = ("ca", "certificate", "crl", "key", "keystore")
    assert files == {"https.ca.location", *(f"ssl.{name}.location" for name in tls)}


def test_all_settings_that_are_named_after_a_secret_are_secret(tmp_path: Path) -> None:
    named = [name for name in settings(tmp_path) if any(word in name for word in _WORDS)]
    assert len(named) > 10
    assert [name for name in named if not is_secret(f"kafka.{name}")] == []
    assert not is_secret("key_in_one_partition")


def test_no_statement_shows_a_secret(topics: Topics) -> None:
    topic = topics.create("t")
    given = {f"kafka.{name}": "tiger77" for name in sorted(ACCEPTED) if is_secret(name)}
    assert len(given) > 10
    source = topics.source("n bigint", **given)
    shown = topics.run(f"explain {source} {source}")
    shown += topics.run("describe {s}; describe extended {s}; show sources; explain select n from {s}")
    options = {"connector": "kafka", "brokers": topics.kafka.brokers, "topic": topic, **given}
    listed = ", ".join(f"{name} = '{value}'" for name, value in options.items())
    for sink in ("as select n from {s}", "from {o}"):
        topics.run("create stream {o} as select n from {s}")
        shown += topics.run(f"explain create sink {{out}} {sink} with ({listed})")
        shown += topics.run(f"create sink {{out}} {sink} with ({listed})")
        shown += topics.run("describe {out}; describe extended {out}; show sinks; show jobs")
        shown += [topics.job("out"), topics.api.read("/api/v1/jobs")]
        topics.run("drop sink {out}; drop stream {o}")
    for name, value in {"security.protocol": "ssl", "batch.size": "many"}.items():
        wrong = topics.source("n bigint", name="r", **given, **{f"kafka.{name}": value})
        shown.append({"error": topics.refused(wrong)})
    assert "tiger77" not in str(shown)
    assert "kafka.sasl.oauthbearer.assertion.private.key.passphrase" in str(shown)
