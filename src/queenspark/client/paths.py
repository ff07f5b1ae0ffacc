"""Dotted paths into a message: `data.user`, `data.items.0.price`, `headers.tenant`, `partition`.

`payload` is an alias of `data`.
"""

from __future__ import annotations

from typing import Any, Final

from .errors import InvalidValue

FIELDS = ("data", "id", "queue", "partition", "transaction_id", "created_at")
_HEADERS = "headers."


class _Missing:
    """Marks an absent value, as opposed to null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Path:
    """A parsed path, for lookup in many messages."""

    def __init__(self, text: str) -> None:
        if text.startswith(_HEADERS) and text != _HEADERS:
            self.text, self._field, self._steps = text, "headers", [text.removeprefix(_HEADERS)]
            return
        first, *self._steps = text.split(".")
        if first == "payload":
            first = "data"
        if first not in FIELDS or not all(self._steps) or (self._steps and first != "data"):
            others = ", ".join(FIELDS[1:])
            raise InvalidValue(
                f"path is {text!r}: use a path into the payload such as data.user, a header such as"
                f" headers.tenant, or one of {others}"
            )
        self.text = text
        self._field = first

    def of(self, message: Any) -> Any:
        """Return the value at this path, or MISSING."""
        value = getattr(message, self._field)
        for step in self._steps:
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return MISSING
        return value
