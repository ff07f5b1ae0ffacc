"""API keys: create, find, list and revoke. Only a hash of the secret is stored."""

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
    #: Seconds until it expires by the database's clock, as of a `find`; None if it never expires.
    seconds_left: float | None = None

    def is_of(self, secret: str) -> bool:
        """Compare with the key's secret, in constant time."""
        return hmac.compare_digest(self.hash, hash_of(secret))


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key to create."""

    name: str
    role: str | None = None
    scopes: Sequence[str] | None = None
    requests_per_second: float | None = None
    messages_per_second: float | None = None
    expires_at: datetime | None = None


def hash_of(secret: str) -> bytes:
    """Return the hash of a secret.

    A slow hash protects secrets chosen by people. This secret has 256 random bits, beyond brute force even
    with a fast hash.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def split(text: str) -> tuple[str, str] | None:
    """Split a key into its id and secret; None if it is malformed."""
    parts = text.split("_", 2)
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == PREFIX else None


class ApiKeys:
    """The keys of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewKey, created_by: str) -> tuple[ApiKey, str]:
        """Create a key; return it with the full key text, which is stored nowhere."""
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
        """Return those of these keys that are valid now."""
        records = await self._database.records("find_api_keys", {"ids": list(ids)})
        return {record["id"]: ApiKey(**record) for record in records}

    async def page(self, page: Page) -> tuple[list[ApiKey], int]:
        """Return a page of all keys, including expired ones, and the total."""
        records, total = await self._database.page("list_api_keys", page)
        return [ApiKey(**record) for record in records], total

    async def revoke(self, id_: str) -> ApiKey | None:
        """Revoke a key permanently; return None if it does not exist."""
        records = await self._database.records("revoke_api_key", {"id": id_})
        return ApiKey(**records[0]) if records else None

    async def used(self, times: Mapping[str, float]) -> None:
        """Record when keys were last used, in seconds since 1970."""
        await self._database.execute("use_api_keys", {"ids": list(times), "times": list(times.values())})
