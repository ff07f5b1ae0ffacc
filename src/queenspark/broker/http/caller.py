"""Callers: who sent a request, and what they may do."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from ...store.headers import PRODUCER
from .right import OF_EVERYBODY, PARTS, ROLES, UNNAMED, Right
from .scope import Scope

Kind = Literal["anonymous", "key", "token"]


class Meter(Protocol):
    """Bounds what a caller does in a second; raises the `ApiError` 429 when it is too much."""

    def request(self) -> None:
        """One request more."""

    def messages(self, count: int) -> None:
        """So many messages more."""


class Caller(msgspec.Struct, frozen=True):
    """Who sent a request.

    A role allows operations on every name, scopes allow what they say; whoever has both may do what both
    allow.
    """

    name: str
    kind: Kind = "anonymous"
    role: str | None = None
    #: None: every name.
    scopes: tuple[Scope, ...] | None = None
    #: The rights to some name at least.
    rights: frozenset[Right] = frozenset(Right)
    meter: Meter | None = None
    #: The headers that messages without headers of their own are stamped with; never changed.
    stamp: dict[str, str] | None = None

    @classmethod
    def known(
        cls,
        name: str,
        kind: Kind,
        role: str | None,
        scopes: tuple[Scope, ...] | None,
        meter: Meter | None = None,
    ) -> Caller:
        """A caller with a role, with scopes, or both; with neither, they may only ask who they are."""
        return cls(name, kind, role, scopes, _rights(role, scopes), meter, {PRODUCER: name})

    @property
    def is_admin(self) -> bool:
        """Whether they have the role `admin` for everything, which no scope can give."""
        return self.rights >= UNNAMED

    def can(self, right: Right) -> bool:
        """Whether they have a right to anything at all."""
        return right in self.rights

    def may(self, right: Right, name: str) -> bool:
        """Whether they have a right to what has this name."""
        if right not in self.rights:
            return False
        return self.scopes is None or any(scope.grants(right) and scope.covers(name) for scope in self.scopes)

    def visible(self, right: Right) -> list[str] | None:
        """The names that they have a right to, as patterns of LIKE; None for every name."""
        if self.scopes is None:
            return None
        return [scope.like for scope in self.scopes if scope.grants(right)]


def _rights(role: str | None, scopes: tuple[Scope, ...] | None) -> frozenset[Right]:
    if role is None and scopes is None:
        return OF_EVERYBODY
    allowed = ROLES[role] if role is not None else ROLES["admin"] - UNNAMED
    if scopes is not None:
        given = {right for right in allowed if any(scope.grants(right) for scope in scopes)}
        given |= {right for right, parts in PARTS.items() if right in allowed and parts & given}
        allowed = frozenset(given)
    return allowed | OF_EVERYBODY


ANONYMOUS = Caller("anonymous")
"""Everybody, where access is not controlled."""

NOBODY = Caller("anonymous", rights=frozenset({Right.PUBLIC}))
"""Whoever calls a public route, where access is controlled."""
