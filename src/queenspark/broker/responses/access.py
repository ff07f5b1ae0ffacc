"""Responses of the access-control routes."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class Me(msgspec.Struct, rename="camel"):
    """The caller's identity and rights."""

    #: The name of the key, or `sub` of the token.
    name: str
    #: `key`, `token`, or `anonymous` when access control is off.
    kind: str
    role: str | None
    #: Null: all names.
    scopes: list[str] | None
    #: Rights on at least one name.
    rights: list[str]
    #: Whether access control is on.
    access_control: bool


class Key(msgspec.Struct, rename="camel", kw_only=True):
    """An API key, without its secret."""

    id: str
    name: str
    role: str | None
    scopes: list[str] | None
    requests_per_second: float | None
    messages_per_second: float | None
    created_at: str
    created_by: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    #: The key itself, shown only on creation.
    key: str | UnsetType = UNSET


class KeyList(msgspec.Struct):
    """A page of the API keys."""

    keys: list[Key]
    total: int
    limit: int
    offset: int


class Act(msgspec.Struct):
    """An administrative act."""

    id: str
    at: str
    caller: str
    kind: str
    address: str
    action: str
    subject: str | None
    status: int


class ActList(msgspec.Struct):
    """A page of the audit log."""

    acts: list[Act]
    total: int
    limit: int
    offset: int
