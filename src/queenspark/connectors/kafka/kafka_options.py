"""The options of a source or sink in Kafka, and the configuration of librdkafka that they make."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from confluent_kafka import KafkaError, KafkaException

from ...sql.options import KAFKA_PREFIX as PREFIX
from ...sql.options import is_secret
from ..checks import Unreachable

log = logging.getLogger("queenspark.kafka")

Format = Literal["json", "text", "raw"]
#: Settings of librdkafka that the connector decides, and why.
_OURS = {
    "bootstrap.servers": "it is the option brokers",
    "isolation.level": "only committed records are read",
    "enable.auto.commit": "offsets are kept in the checkpoint of the job",
    "enable.auto.offset.store": "offsets are kept in the checkpoint of the job",
    "enable.partition.eof": "reads end at an offset",
    "auto.offset.reset": "the option start says where a job begins",
    "enable.idempotence": "the sink never writes a row twice in one run",
    "acks": "every row is acknowledged by all replicas in sync",
    "transactional.id": "the sink writes without transactions",
    "plugin.library.paths": "it would run code on the server",
    "sasl.kerberos.kinit.cmd": "it would run a command on the server",
    "ssl.engine.location": "it would run code on the server",
    "test.mock.num.brokers": "it is for tests of librdkafka",
}


class KafkaOptions(msgspec.Struct, frozen=True):
    """As the statement gives them; see docs/kafka.md."""

    brokers: str
    topic: str
    format: Format = "json"
    #: Settings of librdkafka, without their prefix.
    settings: dict[str, str] = {}

    @classmethod
    def of(cls, options: dict[str, str]) -> KafkaOptions:
        """The options of a statement. Raises Unreachable for a setting that cannot be set."""
        settings = {
            name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)
        }
        for name in settings:
            if name in _OURS:
                raise Unreachable(f"the option {PREFIX}{name} cannot be set: {_OURS[name]}")
        known: dict[str, Any] = {
            name: options[name] for name in ("brokers", "topic", "format") if name in options
        }
        return msgspec.convert({**known, "settings": settings}, cls)

    def client(self, **ours: Any) -> dict[str, Any]:
        """A configuration of librdkafka: that of the statement, with our own settings above it."""
        return {
            "client.id": "queenspark",
            "log_level": 2,  # errors are told by those who ask
            "reconnect.backoff.max.ms": 2000,
            **self.settings,
            "bootstrap.servers": self.brokers,
            "logger": log,
            **ours,
        }

    def consumer(self, **ours: Any) -> dict[str, Any]:
        """The configuration of a consumer that is told what to read, and in no group."""
        # What is asked for is there already, and a fetch that waits for more would hold up the next read.
        given = {"group.id": "queenspark", "queued.max.messages.kbytes": 32768, "fetch.wait.max.ms": 10}
        given |= self.settings
        return {
            **given,
            **self.client(
                **{
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    **ours,
                }
            ),
        }


class Faults:
    """Remembers why a client cannot reach the brokers: librdkafka tells it in the background only."""

    def __init__(self) -> None:
        self._last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Called by librdkafka."""
        # That all brokers are down is said after the reason why one of them is.
        if self._last is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last = error

    @property
    def is_told(self) -> bool:
        """Whether there is a reason."""
        return self._last is not None

    def clear(self) -> None:
        """Forget it."""
        self._last = None

    def reason(self, error: KafkaError) -> KafkaError:
        """The reason of an error: itself, unless it only says that nothing came."""
        vague = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)
        return self._last if self._last is not None and error.code() in vague else error


def opened(make: Callable[[dict[str, Any]], Any], configuration: dict[str, Any]) -> Any:
    """A client of librdkafka. Raises Unreachable for a setting that it refuses, without the value."""
    try:
        return make(configuration)
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        raise Unreachable(
            f"librdkafka refuses the options {PREFIX}…: {_without(configuration, reason.str())}"
        ) from None
    except (TypeError, ValueError) as error:
        raise Unreachable(
            f"librdkafka refuses the options {PREFIX}…: {_without(configuration, str(error))}"
        ) from None


def _without(configuration: dict[str, Any], text: str) -> str:
    """A text without the values of secret settings."""
    for name, value in configuration.items():
        if is_secret(name) and isinstance(value, str) and value:
            text = text.replace(value, "…")
    return text
