"""API keys: made, found, listed and revoked. Of the secret only a hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from .database import Database
from .page import Page

PREFIX = "qsk"
_ID_BYTES = 8
_SECRET_BYTES = 32


class ApiKey(msgspec.Struct, frozen=True):
    """A key as stored."""

    id: str
    name: str
    hash: bytes
    role: str | None
    scopes: list[str] | None
    requests_per_second: float | None
    messages_per_second: float | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    def is_of(self, secret: str) -> bool:
        """Whether this is the key's secret; takes as long for any other one."""
        return hmac.compare_digest(self.hash, hash_of(secret))


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key to be made."""

    name: str
    role: str | None = None
    scopes: Sequence[str] | None = None
    requests_per_second: float | None = None
    messages_per_second: float | None = None
    expires_at: datetime | None = None


def hash_of(secret: str) -> bytes:
    """The hash of a secret.

    A slow hash protects secrets that people choose. This one has 256 random bits, which nobody can try
    through however fast the hash is.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def split(text: str) -> tuple[str, str] | None:
    """The id and the secret of a key as its owner has it; None when it does not look like a key."""
    parts = text.split("_", 2)
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == PREFIX else None


class ApiKeys:
    """The keys of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewKey, created_by: str) -> tuple[ApiKey, str]:
        """Make a key; the second value is the key as its owner needs it, which is stored nowhere."""
        id_, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        scopes = list(new.scopes) if new.scopes is not None else None
        params = {
            **msgspec.structs.asdict(new),
            "scopes": scopes,
            "id": id_,
            "hash": hash_of(secret),
            "created_by": created_by,
        }
        (record,) = await self._database.records("add_api_key", params)
        return ApiKey(**record), f"{PREFIX}_{id_}_{secret}"

    async def find(self, ids: Collection[str]) -> dict[str, ApiKey]:
        """Those of these keys that are good now."""
        records = await self._database.records("find_api_keys", {"ids": list(ids)})
        return {record["id"]: ApiKey(**record) for record in records}

    async def page(self, page: Page) -> tuple[list[ApiKey], int]:
        """A page of all keys, those that are over too; and how many there are."""
        records, total = await self._database.page("list_api_keys", page)
        return [ApiKey(**record) for record in records], total

    async def revoke(self, id_: str) -> ApiKey | None:
        """End a key for good; None when there is no such key."""
        records = await self._database.records("revoke_api_key", {"id": id_})
        return ApiKey(**records[0]) if records else None

    async def used(self, times: Mapping[str, float]) -> None:
        """Note when keys were last used, in seconds since 1970."""
        await self._database.execute("use_api_keys", {"ids": list(times), "times": list(times.values())})
