"""The options of a Kafka source or sink, and the librdkafka configuration derived from them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from confluent_kafka import KafkaError, KafkaException

from ...sql.options import KAFKA_PREFIX as PREFIX
from ...sql.options import is_secret
from ..checks import Unreachable
from .kafka_settings import check_setting

log = logging.getLogger("queenspark.kafka")

Format = Literal["json", "text", "raw"]

_AFTER = re.compile(r" \(after \d+ms in state \w+[^)]*\)")


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

    def producer(self, **ours: Any) -> dict[str, Any]:
        """Return the configuration of an idempotent producer."""
        defaults = {"linger.ms": 20, "compression.type": "lz4", **self.settings}
        return {**defaults, **self.client(**{"enable.idempotence": True, "acks": "all", **ours})}


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


def said(error: KafkaError) -> str:
    """Return the text of an error, without timings, which differ each time."""
    return _AFTER.sub("", error.str())


def opened(make: Callable[[dict[str, Any]], Any], configuration: dict[str, Any]) -> Any:
    """Create a librdkafka client. Raises Unreachable for a rejected setting, without its value."""
    try:
        return make(configuration)
    except KafkaException as error:
        reason = said(error.args[0])
    except (TypeError, ValueError) as error:
        reason = str(error)
    # librdkafka does not say that a file is missing, only that OpenSSL failed.
    reason = _unreadable(configuration) or _without(configuration, reason)
    raise Unreachable(f"librdkafka rejected the options {PREFIX}…: {reason}")


def _unreadable(configuration: dict[str, Any]) -> str | None:
    """Return which file of the configuration cannot be read, and why."""
    for name, value in configuration.items():
        path = Path(str(value))
        if name.endswith(".location") and path.is_absolute() and not path.is_dir():
            try:
                path.open("rb").close()
            except OSError as error:
                return f"{PREFIX}{name} is {value}, which cannot be read: {error.strerror}"
    return None


def _without(configuration: dict[str, Any], text: str) -> str:
    """Mask the values of secret settings in a text."""
    for name, value in configuration.items():
        if is_secret(name) and isinstance(value, str) and value:
            text = text.replace(value, "…")
    return text
