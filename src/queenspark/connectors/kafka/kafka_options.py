"""The options of a Kafka source or sink, and the librdkafka configuration derived from them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from confluent_kafka import KafkaError, KafkaException

from ...sql.options import KAFKA_PREFIX as PREFIX
from ...sql.options import is_secret
from ..checks import Unreachable
from .kafka_settings import check_setting

log = logging.getLogger("queenspark.kafka")

Format = Literal["json", "text", "raw"]


class KafkaOptions(msgspec.Struct, frozen=True):
    """Options as given in the statement; see docs/kafka.md."""

    brokers: str
    topic: str
    format: Format = "json"
    #: Settings of librdkafka, without their prefix.
    settings: dict[str, str] = {}

    @classmethod
    def of(cls, options: dict[str, str]) -> KafkaOptions:
        """Parse the options of a statement. Raises Unreachable for settings that cannot be given."""
        settings = {
            name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)
        }
        for name in settings:
            check_setting(name)
        known: dict[str, Any] = {
            name: options[name] for name in ("brokers", "topic", "format") if name in options
        }
        return msgspec.convert({**known, "settings": settings}, cls)

    def client(self, **ours: Any) -> dict[str, Any]:
        """Return a librdkafka configuration: the statement's settings, overridden by our own."""
        return {
            "client.id": "queenspark",
            "log_level": 2,  # callers report errors themselves
            "reconnect.backoff.max.ms": 2000,
            **self.settings,
            "bootstrap.servers": self.brokers,
            "logger": log,
            **ours,
        }

    def consumer(self, **ours: Any) -> dict[str, Any]:
        """Return the configuration of a consumer with manual assignment and without a group."""
        # The requested records already exist; a fetch that waits for more would delay the next read.
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
    """Remembers why a client cannot reach the brokers, which librdkafka reports only in the background."""

    def __init__(self) -> None:
        self._last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Record an error; called by librdkafka."""
        # "All brokers down" follows the error that explains it: keep the latter.
        if self._last is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last = error

    @property
    def is_told(self) -> bool:
        """Whether an error was reported."""
        return self._last is not None

    def clear(self) -> None:
        """Forget the error."""
        self._last = None

    def reason(self, error: KafkaError) -> KafkaError:
        """Return the cause of an error: the recorded one if the error is vague, else the error itself."""
        vague = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)
        return self._last if self._last is not None and error.code() in vague else error


def opened(make: Callable[[dict[str, Any]], Any], configuration: dict[str, Any]) -> Any:
    """Create a librdkafka client. Raises Unreachable for a rejected setting, without its value."""
    try:
        return make(configuration)
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        raise Unreachable(
            f"librdkafka rejected the options {PREFIX}…: {_without(configuration, reason.str())}"
        ) from None
    except (TypeError, ValueError) as error:
        raise Unreachable(
            f"librdkafka rejected the options {PREFIX}…: {_without(configuration, str(error))}"
        ) from None


def _without(configuration: dict[str, Any], text: str) -> str:
    """Mask the values of secret settings in a text."""
    for name, value in configuration.items():
        if is_secret(name) and isinstance(value, str) and value:
            text = text.replace(value, "…")
    return text
