"""The producer's input: bare payloads, and messages with metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Raw

from .errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to push, with its own partition, transaction id, trace id or headers."""

    payload: Any
    partition: str | None = None
    transaction_id: str | None = None
    trace_id: str | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Pushed:
    """The result of pushing one message. A duplicate was stored earlier under the same transaction id."""

    message_id: str
    transaction_id: str
    partition_id: str
    duplicate: bool


class Item(msgspec.Struct, rename="camel", omit_defaults=True):
    """A message as sent to the broker."""

    queue: str
    payload: Raw
    transaction_id: str
    partition: str = "Default"
    trace_id: str | None = None
    headers: dict[str, str] | None = None

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        headers = self.headers or {}
        return len(self.payload) + sum(len(name) + len(value) for name, value in headers.items())


def items(
    queue: str,
    partition: str | None,
    payloads: Any,
    transaction_id: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> list[Item]:
    """Build the items of a push: a list is many messages, anything else is one.

    Headers apply to every message; an Outgoing adds its own. An item without a transaction id gets one here,
    so that retries store it once.
    """
    many: Iterable[Any] = payloads if isinstance(payloads, list | tuple) else [payloads]
    made = [_item(queue, partition, each, headers) for each in many]
    if transaction_id is not None:
        if len(made) != 1:
            raise InvalidValue(
                f"transaction_id requires a single message, not {len(made)}:"
                " push Outgoing(payload, transaction_id=…) for each"
            )
        made[0].transaction_id = transaction_id
    return made


def _item(queue: str, partition: str | None, given: Any, headers: Mapping[str, str] | None) -> Item:
    one = given if isinstance(given, Outgoing) else Outgoing(given)
    try:
        payload = Raw(msgspec.json.encode(one.payload))
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"payload cannot be serialized as JSON: {error}") from error
    return Item(
        queue=queue,
        payload=payload,
        transaction_id=one.transaction_id or str(uuid4()),
        partition=one.partition or partition or "Default",
        trace_id=one.trace_id,
        headers=_headers(headers, one.headers),
    )


def _headers(*given: Mapping[Any, Any] | None) -> dict[str, str] | None:
    """Merge headers; later ones win."""
    merged = {name: value for each in given for name, value in (each or {}).items()}
    for name, value in merged.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidValue(f"header {name!r} is {value!r}: header values must be strings: use str(…)")
    return merged or None
