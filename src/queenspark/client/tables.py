"""Messages as an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from .messages import Message

_FIXED = [
    ("id", pa.string()),
    ("transaction_id", pa.string()),
    ("queue", pa.string()),
    ("partition", pa.string()),
    ("created_at", pa.timestamp("us", "UTC")),
]
_HEADERS = pa.map_(pa.string(), pa.string())


def to_arrow(messages: Sequence[Message]) -> pa.Table:
    """Return one row per message and one column per payload field."""
    columns = {name: pa.array([getattr(each, name) for each in messages], kind) for name, kind in _FIXED}
    if any(message.headers for message in messages):
        columns["headers"] = pa.array([list(message.headers.items()) for message in messages], _HEADERS)
    payloads = [message.data for message in messages]
    objects = [payload if isinstance(payload, dict) else {} for payload in payloads]
    for name in dict.fromkeys(name for payload in objects for name in payload):
        columns[f"data.{name}"] = _column([payload.get(name) for payload in objects])
    if any(not isinstance(payload, dict) for payload in payloads):
        columns["data"] = _column([None if isinstance(payload, dict) else payload for payload in payloads])
    return pa.table(columns)


def _column(values: list[Any]) -> pa.Array:
    """Return the values in their common type, or as JSON text."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values])
    texts = [None if value is None else msgspec.json.encode(value).decode() for value in values]
    return pa.array(texts, pa.string())
