"""The librdkafka settings that a statement may give, as options `kafka.…`.

All others are rejected: librdkafka runs in the broker and in the pipeline, and some of its settings load
libraries, run commands, or read and write files. A new version of librdkafka can add more of them.
"""

from __future__ import annotations

from ...sql.errors import did_you_mean
from ...sql.options import KAFKA_PREFIX as PREFIX
from ..checks import Unreachable

_ACCEPTED = """
    security.protocol enable.ssl.certificate.verification https.ca.location https.ca.pem
    ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.cipher.suites ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm
    ssl.key.location ssl.key.password ssl.key.pem ssl.keystore.location ssl.keystore.password
    ssl.sigalgs.list
    sasl.mechanism sasl.mechanisms sasl.username sasl.password
    enable.sasl.oauthbearer.unsecure.jwt sasl.oauthbearer.config sasl.oauthbearer.method
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.extensions sasl.oauthbearer.grant.type sasl.oauthbearer.scope
    sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    sasl.oauthbearer.metadata.authentication.type
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.private.key.pem
    client.id client.rack client.dns.lookup group.id
    broker.address.family broker.address.ttl connections.max.idle.ms enable.metrics.push
    socket.blocking.max.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails
    socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms
    retry.backoff.max.ms retry.backoff.ms
    metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse
    message.copy.max.bytes message.max.bytes receive.message.max.bytes
    check.crcs fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes
    fetch.queue.backoff.ms fetch.wait.max.ms max.partition.fetch.bytes queued.max.messages.kbytes
    queued.min.messages
    batch.num.messages batch.size compression.codec compression.level compression.type
    delivery.timeout.ms linger.ms max.in.flight max.in.flight.requests.per.connection
    message.send.max.retries message.timeout.ms partitioner queue.buffering.backpressure.threshold
    queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms request.timeout.ms
    retries sticky.partitioning.linger.ms
"""
#: Accepted settings. Those of TLS may name files on the server.
ACCEPTED = frozenset(_ACCEPTED.split())

_CODE = "it would run code on the server"
_COMMAND = "it would run a command on the server"
_FILE = "it would send a file of the server to the token endpoint"
_LOG = "the connector reports errors itself"
_OFFSETS = "offsets are kept in the checkpoint of the job"
_ACKS = "every row is acknowledged by all in-sync replicas"
#: Why settings that users may look for are rejected.
_REASONS = {
    "bootstrap.servers": "use the option brokers",
    "metadata.broker.list": "use the option brokers",
    "isolation.level": "only committed records are read",
    "enable.auto.commit": _OFFSETS,
    "auto.commit.enable": _OFFSETS,
    "auto.commit.interval.ms": _OFFSETS,
    "enable.auto.offset.store": _OFFSETS,
    "offset.store.method": _OFFSETS,
    "offset.store.path": _OFFSETS,
    "offset.store.sync.interval.ms": _OFFSETS,
    "enable.partition.eof": "reads end at an offset",
    "auto.offset.reset": "the option start determines where a job begins",
    "allow.auto.create.topics": "the topic must exist; create it first",
    "enable.idempotence": "the sink never writes a row twice in one run",
    "acks": _ACKS,
    "request.required.acks": _ACKS,
    "transactional.id": "the sink writes without transactions",
    "transaction.timeout.ms": "the sink writes without transactions",
    "plugin.library.paths": _CODE,
    "ssl.engine.id": _CODE,
    "ssl.engine.location": _CODE,
    "ssl.providers": _CODE,
    "sasl.kerberos.keytab": _COMMAND,
    "sasl.kerberos.kinit.cmd": _COMMAND,
    "sasl.kerberos.min.time.before.relogin": _COMMAND,
    "sasl.kerberos.principal": _COMMAND,
    "sasl.kerberos.service.name": _COMMAND,
    "sasl.oauthbearer.assertion.file": _FILE,
    "sasl.oauthbearer.assertion.jwt.template.file": _FILE,
    "sasl.oauthbearer.assertion.private.key.file": (
        f"it would read a file of the server; use {PREFIX}sasl.oauthbearer.assertion.private.key.pem"
    ),
    "debug": _LOG,
    "log_level": _LOG,
    "log.connection.close": _LOG,
    "log.queue": _LOG,
    "log.thread.name": _LOG,
    "statistics.interval.ms": _LOG,
}


def check_setting(name: str) -> None:
    """Raise Unreachable, with the reason, for a setting that a statement may not give."""
    if name in ACCEPTED:
        return
    reason = _REASONS.get(name)
    if reason is not None:
        raise Unreachable(f"the option {PREFIX}{name} cannot be set: {reason}")
    hint = did_you_mean(name, sorted(ACCEPTED)) or "; docs/kafka.md lists the options that can be set"
    raise Unreachable(f"the option {PREFIX}{name} cannot be set: it is not a supported setting{hint}")
