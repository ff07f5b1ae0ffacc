"""API keys as a broker knows them: read once, looked at again every two seconds and when one changes."""

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
"""How long a key is good after it was last seen in the database.

So a revoked key ends within five seconds, even when the news of it got lost."""

_MOST = 10_000  # keys that are known
_UNKNOWN = "the API key is not valid: it may be mistyped, revoked or expired"


class KnownKey:
    """A key, the caller that it stands for, and until when it may be trusted."""

    def __init__(self, key: ApiKey) -> None:
        self.key = key
        self.meter = KeyMeter(key.requests_per_second, key.messages_per_second)
        self.caller = _caller(key, self.meter)
        self.until = 0.0
        self.trust()

    def trust(self) -> None:
        """It was seen in the database just now."""
        self.until = time.monotonic() + TRUSTED_SECONDS
        if self.key.expires_at is not None:
            left = self.key.expires_at.timestamp() - time.time()
            self.until = min(self.until, time.monotonic() + left)


def _caller(key: ApiKey, meter: KeyMeter) -> Caller:
    limited = key.requests_per_second is not None or key.messages_per_second is not None
    scopes = None if key.scopes is None else parse_scopes(key.scopes)
    return Caller.known(key.name, "key", key.role, scopes, meter if limited else None)


class KnownKeys:
    """The keys that were used of late."""

    def __init__(self, keys: ApiKeys) -> None:
        self._keys = keys
        self._known: dict[str, KnownKey] = {}
        self._used: dict[str, float] = {}
        #: Counts the times at which everything was forgotten.
        self.version = 0

    async def check(self, text: str) -> KnownKey:
        """The key of that text, or 401."""
        parts = split(text)
        if parts is None:
            raise unauthorized(_UNKNOWN)
        id_, secret = parts
        known = self._known.get(id_)
        if known is None or known.until <= time.monotonic():
            version = self.version
            found = (await self._keys.find([id_])).get(id_)
            if found is None:
                self._known.pop(id_, None)
                raise unauthorized(_UNKNOWN)
            known = self._renewed(known, found)
            if version == self.version:  # else it may have been revoked since it was read
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[id_] = known
        if not known.key.is_of(secret):
            raise unauthorized(_UNKNOWN)
        return known

    def used(self, known: KnownKey) -> None:
        """A key was used; noted in the database later."""
        self._used[known.key.id] = time.time()

    def forget(self) -> None:
        """A key has changed: look at each again before it is trusted."""
        self.version += 1
        for known in self._known.values():
            known.until = 0.0

    async def refresh(self) -> None:
        """Look again at all keys that are known, and note when they were used."""
        used, self._used = self._used, {}
        if used:
            try:
                await self._keys.used(used)
            except StoreError as error:
                log.warning("the last use of API keys could not be noted: %s", error)
        recent = list(self._known)
        if not recent:
            return
        version = self.version
        found = await self._keys.find(recent)
        if version != self.version:
            return
        for id_ in recent:
            known = self._known.get(id_)
            if known is not None and id_ in found:
                self._known[id_] = self._renewed(known, found[id_])
            elif known is not None:
                known.until = 0.0
                del self._known[id_]

    @staticmethod
    def _renewed(known: KnownKey | None, found: ApiKey) -> KnownKey:
        """What is known of a key, with its meter as it stands."""
        if known is None:
            return KnownKey(found)
        known.key = found
        known.trust()
        return known
