"""Statements can give only harmless settings of librdkafka."""

from pathlib import Path

import pytest

from queenspark.connectors.checks import Unreachable
from queenspark.connectors.kafka.kafka_options import KafkaOptions
from queenspark.connectors.kafka.kafka_settings import ACCEPTED
from tests.kafka.librdkafka import settings

#: They load libraries, run commands, read, write or send files, change the log, or change what we rely on.
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
