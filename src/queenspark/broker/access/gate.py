"""The gate: admits callers to routes."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

from ...failed_logins import FailedLogins
from ...settings import Settings
from ...store import Store
from ...store.api_keys import PREFIX
from ...store.definitions import DEFAULT_NAMESPACE
from ...store.errors import StoreError
from ..errors import ApiError, not_found
from ..http import NOBODY, Call, Caller, Right, Route
from ..http.call import forbidden
from .credential import UnknownKey, credential_of, header_of, unauthorized
from .known_keys import KnownKey, KnownKeys
from .tokens import Tokens

log = logging.getLogger("queenspark.broker")

_MOST = 10_000  # cached credentials
FREE_FAILURES = 10
"""Failed logins of an address before it has to wait; people mistype."""

_MISSING = (
    "this broker needs an API key or a token: send it as `Authorization: Bearer …`;"
    " `queenspark keys create` makes keys"
)


class _Known(NamedTuple):
    """A verified credential: an API key, or the caller of a token with its expiry."""

    key: KnownKey | None
    caller: Caller
    until: float
    version: int


class Gate:
    """Admits callers with a valid credential whose role and scopes allow the route."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.keys = KnownKeys(store.api_keys)
        self.tokens = Tokens(settings) if settings.jwt_enabled else None
        self._failures = FailedLogins(FREE_FAILURES, longest_seconds=60, forgiven_seconds=300)
        #: Credentials that were valid when last checked; an entry may have expired.
        self._known: OrderedDict[tuple[bytes, bytes], _Known] = OrderedDict()

    async def admit(self, call: Call, route: Route) -> Caller:
        """Return the caller, or raise the `ApiError` that rejects them: 401, 403, 404, 429 or 503."""
        right = route.right
        if right is Right.PUBLIC:
            return NOBODY
        caller = await self._caller(call)
        # First, so that rejected requests count too.
        if caller.meter is not None:
            caller.meter.request()
        if right not in caller.rights:
            raise forbidden(caller.name, right)
        if caller.scopes is not None:
            _check_path(call, caller, right)
        return caller

    async def _caller(self, call: Call) -> Caller:
        header = header_of(call)
        if header is None:
            raise unauthorized(_MISSING)
        digest = (header[0], hashlib.sha256(header[1]).digest())
        known = self._known.get(digest)
        if known is None or not self._is_good(known):
            known = await self._checked(call, digest, credential_of(header))
        if known.key is not None:
            self.keys.used(known.key)
        call.is_known = partial(self._is_good, known)
        return known.caller

    def _is_good(self, known: _Known) -> bool:
        if known.key is not None:
            return known.key.until > time.monotonic()
        return (
            known.until > time.time()
            and self.tokens is not None
            and known.version == self.tokens.keys.version
        )

    async def _checked(self, call: Call, digest: tuple[bytes, bytes], credential: str) -> _Known:
        """Verify a credential. While an address has to wait, only those that were valid before."""
        if digest not in self._known and (wait := self._failures.wait_seconds(call.address)):
            raise ApiError(
                429,
                f"too many failed logins from {call.address}: try again in {wait} s",
                "rate_limited",
                retry_after=wait,
            )
        try:
            known = await self._verified(credential)
        except ApiError as error:
            if error.status == 401:
                self._known.pop(digest, None)
                if not isinstance(error, UnknownKey):
                    self._failures.add(call.address)
            raise
        except StoreError as error:
            # The caller is unknown: do not disclose the database's address.
            log.warning("cannot check an API key of %s: %s", call.address, error)
            raise ApiError(
                503,
                "the API key cannot be checked: the database is not available; retry later",
                retry_after=1,
            ) from error
        self._known[digest] = known
        self._known.move_to_end(digest)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return known

    async def _verified(self, credential: str) -> _Known:
        if credential.startswith(f"{PREFIX}_"):
            key = await self.keys.check(credential)
            return _Known(key, key.caller, 0.0, 0)
        if self.tokens is None:
            raise unauthorized("the credential is not an API key, and this broker does not accept tokens")
        caller, until = await self.tokens.check(credential)
        return _Known(None, caller, until, self.tokens.keys.version)


def _check_path(call: Call, caller: Caller, right: Right) -> None:
    """Raise 404 for a name in the path outside the caller's scopes, as if it did not exist."""
    parameter = {"queue": "queue", "job": "name"}.get(right.kind, "")
    name = call.path.get(parameter)
    if name is None:
        return
    own = name.removeprefix(f"{DEFAULT_NAMESPACE}.") if right.kind == "job" else name
    if not caller.may(right, own):
        raise not_found(f"{right.kind} {name} does not exist")
