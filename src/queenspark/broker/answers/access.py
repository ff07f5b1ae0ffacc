"""What the routes of access control answer."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class Me(msgspec.Struct, rename="camel"):
    """Who the caller is, and what they may do."""

    #: The name of the key, or `sub` of the token.
    name: str
    #: `key`, `token`, or `anonymous` where access is not controlled.
    kind: str
    role: str | None
    #: Null: every name.
    scopes: list[str] | None
    #: The rights to some name at least.
    rights: list[str]
    #: Whether callers need a key or a token here.
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
    #: The key itself. It is shown when it is made, and never again.
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
