"""Scopes: an action on a pattern of names, such as `queue:orders.*:push` or `jobs:admin`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .right import Right

KINDS = {
    "queue": ("push", "consume", "read", "configure", "admin"),
    "stream": ("consume", "read", "admin"),
    "job": ("read", "admin"),
    "system": ("read", "admin"),
}
"""The actions of each kind of resource."""

_PLURALS = {"queues": "queue", "streams": "stream", "jobs": "job", "system": "system"}
_OF_ADMIN = ("read", "configure")
_MOST_STARS = 8
_MOST_LENGTH = 255


class ScopeError(ValueError):
    """An invalid scope; the message explains the syntax."""


class Scope(msgspec.Struct, frozen=True):
    """An action on all names of a kind that match a pattern, where `*` matches any characters."""

    kind: str
    pattern: str
    action: str

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Parse `kind:pattern:action`, or `kinds:action` for every name. Raises ScopeError."""
        kind, _, rest = text.partition(":")
        pattern, _, action = rest.rpartition(":")
        if not pattern and rest == action and kind in _PLURALS:
            kind, pattern = _PLURALS[kind], "*"
        if kind not in KINDS or not pattern:
            raise ScopeError(
                f"scope {text!r:.300} is invalid: use queue:orders.*:push, stream:shop/*:consume,"
                " jobs:admin or system:read"
            )
        if action not in (*KINDS[kind], "*"):
            raise ScopeError(
                f"scope {text!r:.300} has an unknown action {action!r:.100}: use one of"
                f" {', '.join(KINDS[kind])} or *"
            )
        if kind == "system" and pattern != "*":
            raise ScopeError(f"scope {text!r:.300} must not have a name: use system:{action}")
        if pattern.count("*") > _MOST_STARS or len(pattern) > _MOST_LENGTH:
            raise ScopeError(
                f"scope {text!r:.300} has a pattern that is too long: at most {_MOST_LENGTH} characters and"
                f" {_MOST_STARS} stars"
            )
        return cls(kind, pattern, action)

    def __str__(self) -> str:
        if self.pattern == "*":
            return f"{self.kind}{'' if self.kind == 'system' else 's'}:{self.action}"
        return f"{self.kind}:{self.pattern}:{self.action}"

    def grants(self, right: Right) -> bool:
        """Whether it grants a right on some name. `admin` includes `read` and `configure`."""
        if right.kind != self.kind:
            return False
        action = right.action
        return self.action in (action, "*") or (self.action == "admin" and action in _OF_ADMIN)

    def covers(self, name: str) -> bool:
        """Whether a name matches the pattern; linear in the length of the name."""
        first, *others = self.pattern.split("*")
        if not others:
            return name == first
        last = others.pop()
        if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
            return False
        at, end = len(first), len(name) - len(last)
        for part in others:
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    @property
    def like(self) -> str:
        """The pattern in LIKE syntax."""
        escaped = self.pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return escaped.replace("*", "%")


def parse_scopes(texts: Iterable[str]) -> tuple[Scope, ...]:
    """Parse scopes and drop duplicates. Raises ScopeError."""
    return tuple(dict.fromkeys(Scope.parse(text) for text in texts))
