"""A Kafka broker on loopback: one JVM (KRaft), with a data folder of its own, that tests may kill.

`make kafka` fetches it. Where it is missing, librdkafka's mock cluster serves the tests that it can serve.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from queenspark.pipeline.spark.java import find_java_home
from tests.access.certificates import Authority

LIBS = Path(__file__).parents[2] / ".kafka" / "libs"
_START_SECONDS = 90.0
_CLUSTER = "cXVlZW5zcGFyay10ZXN0cw"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,SASL:SASL_SSL
controller.listener.names=CONTROLLER
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
listener.name.tls.ssl.client.auth=required
listener.name.sasl.ssl.client.auth=none
listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required {users};
listener.name.sasl.scram-sha-512.sasl.jaas.config=\\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:CN=client;User:anna
log.dirs={data}
auto.create.topics.enable=false
log.retention.ms=-1
log.message.timestamp.after.max.ms=9223372036854775807
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
controller.quorum.election.timeout.ms=300
controller.quorum.fetch.timeout.ms=600
num.network.threads=2
num.io.threads=2
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=500
log.initial.task.delay.ms=100
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=1048577
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
"""


#: The passwords of users. Only anna may use topics.
PASSWORDS = {"anna": "tiger77", "ben": "puma55"}


class Kafka(Protocol):
    """A cluster that tests can use."""

    #: Its address for clients, without TLS and without users.
    brokers: str
    #: Whether it is a broker of Kafka, not a mock.
    is_real: bool


def is_fetched() -> bool:
    """Whether `make kafka` has fetched the broker."""
    return (LIBS.parent / ".ready").exists()


class KafkaBroker:
    """The broker, as a process of the test's own.

    Its listener `tls` requires a certificate of its authority of clients; `sasl` has TLS and requires a user.
    """

    is_real = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "broker.log"
        self._properties = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        *ports, controller = _free_ports(4)
        self.brokers, self.tls, self.sasl = (f"127.0.0.1:{port}" for port in ports)
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(folder)
        certificate, key = self.authority.issue("broker")
        keystore = folder / "keystore.pem"
        keystore.write_text(key.read_text() + certificate.read_text())
        self._properties.write_text(
            _PROPERTIES.format(
                listeners=f"PLAINTEXT://{self.brokers},TLS://{self.tls},SASL://{self.sasl}",
                controller=controller,
                data=folder / "data",
                keystore=keystore,
                truststore=self.authority.file,
                users=" ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items()),
            )
        )
        scram = [
            f"--add-scram=SCRAM-SHA-512=[name={user},password={password}]"
            for user, password in PASSWORDS.items()
        ]
        self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties), *scram)

    def start(self) -> None:
        """Start it on its data, and wait until clients reach it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._properties)), stdout=log, stderr=log, cwd=self._folder
            )
        deadline = time.monotonic() + _START_SECONDS
        while not reachable(self.brokers):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the Kafka broker did not start:\n{self.log()}")

    def kill(self) -> None:
        """Kill it without notice."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it."""
        self._end(signal.SIGTERM)

    def log(self) -> str:
        """The content of its log."""
        return self._log.read_text(errors="replace")

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        with self._log.open("ab") as log:
            return subprocess.run(
                self._java(*arguments), stdout=log, stderr=log, cwd=self._folder, timeout=90, check=True
            )

    def _java(self, *arguments: str) -> list[str]:
        java = find_java_home() / "bin" / "java"
        return [
            str(java), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{LIBS}{os.sep}*", *arguments,
        ]  # fmt: skip


class MockCluster:
    """librdkafka's mock cluster: it lives as long as the client that made it."""

    is_real = False

    def __init__(self) -> None:
        self._client = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
        self._client.list_topics(topic=f"first-{uuid4().hex}", timeout=10)
        metadata = self._client.list_topics(timeout=10)
        self.brokers = ",".join(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values())


def reachable(brokers: str) -> bool:
    """Whether a client gets a response within a second."""
    client = AdminClient({"bootstrap.servers": brokers, "log_level": 0, "reconnect.backoff.max.ms": 200})
    try:
        return bool(client.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def _free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
