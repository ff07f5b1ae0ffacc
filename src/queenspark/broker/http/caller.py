"""Callers: the identity behind a request, and its rights."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from ...store.definitions import WINDOW_QUEUES, stream_of_queue
from ...store.headers import PRODUCER
from .right import OF_EVERYBODY, OF_WINDOWS, PARTS, ROLES, UNNAMED, Right
from .scope import Scope

Kind = Literal["anonymous", "key", "token"]


class Meter(Protocol):
    """Rate limits of a caller; raises the `ApiError` 429 when exceeded."""

    def request(self) -> None:
        """Count one request."""

    def messages(self, count: int) -> None:
        """Count messages before they are pushed; zero only checks."""

    def delivered(self, count: int) -> None:
        """Count messages after their delivery."""


class Caller(msgspec.Struct, frozen=True):
    """The identity behind a request.

    A role grants operations on every name, scopes grant operations on matching names; with both, only their
    intersection is allowed.
    """

    name: str
    kind: Kind = "anonymous"
    role: str | None = None
    #: None: all names.
    scopes: tuple[Scope, ...] | None = None
    #: Rights on at least one name.
    rights: frozenset[Right] = frozenset(Right)
    meter: Meter | None = None
    #: Headers stamped on messages without headers of their own; immutable.
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
        """Build a caller with a role, scopes, or both; with neither, only their identity is readable."""
        return cls(name, kind, role, scopes, _rights(role, scopes), meter, {PRODUCER: name})

    @property
    def is_admin(self) -> bool:
        """Whether they have the unscoped role `admin`, which no scope can grant."""
        return self.rights >= UNNAMED

    def can(self, right: Right) -> bool:
        """Whether they have a right on any name."""
        return right in self.rights

    def may(self, right: Right, name: str) -> bool:
        """Whether they have a right on this name. For a window queue, it is the right on the stream."""
        if right not in self.rights:
            return False
        if self.scopes is None:
            return True
        if name.startswith(WINDOW_QUEUES) and right.kind == "queue":
            stream, needed = stream_of_queue(name), OF_WINDOWS.get(right)
            return stream is not None and needed is not None and self.may(needed, "/".join(stream))
        return any(scope.grants(right) and scope.covers(name) for scope in self.scopes)

    def visible(self, right: Right) -> list[str] | None:
        """The names that they have a right on, as LIKE patterns; None for all.

        Patterns for queues match `scoped_name` of a queue.
        """
        if self.scopes is None:
            return None
        names = [scope.like for scope in self.scopes if right in self.rights and scope.grants(right)]
        if right.kind != "queue":
            return names
        needed = OF_WINDOWS.get(right)
        streams = self.visible(needed) if needed is not None and needed in self.rights else None
        return [f"queue:{name}" for name in names] + [f"stream:{name}" for name in streams or ()]


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
"""Every caller, when access control is off."""

NOBODY = Caller("anonymous", rights=frozenset({Right.PUBLIC}))
"""The caller of a public route, when access control is on."""
