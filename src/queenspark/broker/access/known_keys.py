"""A broker's cache of API keys: refreshed every two seconds and on change notifications."""

from __future__ import annotations

import logging
import time

from ...store.api_keys import ApiKey, ApiKeys, split
from ...store.errors import StoreError
from ..http import Caller, parse_scopes
from .credential import unauthorized
from .meter import KeyMeter

log = logging.getLogger("queenspark.broker")

REFRESH_SECONDS = 2.0
TRUSTED_SECONDS = 4.0
"""How long a key is valid after it was last read from the database.

A revoked key thus expires within five seconds, even if its notification is lost.
"""

_MOST = 10_000  # cached keys
_UNKNOWN = "the API key is not valid: it may be mistyped, revoked or expired"


class KnownKey:
    """A cached key, its caller, and the expiry of the cache entry."""

    def __init__(self, key: ApiKey, read_at: float) -> None:
        self.key = key
        self.meter = KeyMeter(key.requests_per_second, key.messages_per_second)
        self.caller = _caller(key, self.meter)
        self.until = 0.0
        #: Whether it was used since its last use was written to the database.
        self.used = False
        self.trust(read_at)

    def is_good(self) -> bool:
        """Whether it is still valid."""
        return self.until > time.monotonic()

    def trust(self, read_at: float) -> None:
        """Extend the expiry: the key was just read from the database, not before `read_at`."""
        self.until = time.monotonic() + TRUSTED_SECONDS
        if self.key.seconds_left is not None:
            # The clock of this machine may differ from that of the database, which decides.
            self.until = min(self.until, read_at + self.key.seconds_left)


def _caller(key: ApiKey, meter: KeyMeter) -> Caller:
    limited = key.requests_per_second is not None or key.messages_per_second is not None
    scopes = None if key.scopes is None else parse_scopes(key.scopes)
    return Caller.known(key.name, "key", key.role, scopes, meter if limited else None)


class KnownKeys:
    """The recently used keys."""

    def __init__(self, keys: ApiKeys) -> None:
        self._keys = keys
        self._known: dict[str, KnownKey] = {}
        #: Number of times that the cache was invalidated.
        self.version = 0

    async def check(self, text: str) -> KnownKey:
        """Return the key with this text, or raise 401."""
        parts = split(text)
        if parts is None:
            raise unauthorized(_UNKNOWN)
        id_, secret = parts
        known = self._known.get(id_)
        if known is None or not known.is_good():
            version, read_at = self.version, time.monotonic()
            found = (await self._keys.find([id_])).get(id_)
            if found is None:
                self._known.pop(id_, None)
                raise unauthorized(_UNKNOWN)
            known = self._renewed(known, found, read_at)
            if version == self.version:  # otherwise it may have been revoked since it was read
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[id_] = known
        if not known.key.is_of(secret):
            raise unauthorized(_UNKNOWN)
        return known

    def forget(self) -> None:
        """Invalidate the cache: a key has changed."""
        self.version += 1
        for known in self._known.values():
            known.until = 0.0

    async def refresh(self) -> None:
        """Read all cached keys again, and write their last use."""
        used = [known for known in self._known.values() if known.used]
        for known in used:
            known.used = False
        if used:
            try:
                await self._keys.used(dict.fromkeys([known.key.id for known in used], time.time()))
            except StoreError as error:
                log.warning("cannot record the last use of API keys: %s", error)
        recent = list(self._known)
        if not recent:
            return
        version, read_at = self.version, time.monotonic()
        found = await self._keys.find(recent)
        if version != self.version:
            return
        for id_ in recent:
            kept = self._known.get(id_)
            if kept is not None and id_ in found:
                self._known[id_] = self._renewed(kept, found[id_], read_at)
            elif kept is not None:
                kept.until = 0.0
                del self._known[id_]

    @staticmethod
    def _renewed(known: KnownKey | None, found: ApiKey, read_at: float) -> KnownKey:
        """Return the cache entry of a key, keeping its meter."""
        if known is None:
            return KnownKey(found, read_at)
        known.key = found
        known.trust(read_at)
        return known
