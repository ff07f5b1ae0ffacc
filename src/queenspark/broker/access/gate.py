"""The gate: admits callers to routes."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from hashlib import blake2b

from ...failed_logins import FailedLogins
from ...settings import Settings
from ...store.api_keys import PREFIX
from ...store.definitions import DEFAULT_NAMESPACE
from ...store.errors import StoreError
from ...store.store import Store
from ..errors import ApiError, not_found
from ..http import NOBODY, Call, Caller, Forbidden, Right, Route
from .credential import UnknownKey, credential_of, header_of, unauthorized
from .known_keys import KnownKey, KnownKeys
from .token_keys import TokenKeys
from .tokens import Tokens

log = logging.getLogger("queenspark.broker")

Digest = tuple[bytes, bytes]
"""The name of the header with a credential, and the hash of its value."""

_MOST = 10_000  # cached credentials
FREE_FAILURES = 10
"""Failed logins of an address before it has to wait; people mistype."""

_MISSING = (
    "this broker needs an API key or a token: send it as `Authorization: Bearer …`;"
    " `queenspark keys create` makes keys"
)


class KnownToken:
    """A verified token and its caller, until it expires or the keys change."""

    def __init__(self, caller: Caller, until: float, keys: TokenKeys) -> None:
        self.caller = caller
        self.used = False
        self._until = until
        self._keys = keys
        self._version = keys.version

    def is_good(self) -> bool:
        """Whether it is still valid."""
        return self._until > time.time() and self._version == self._keys.version


class Gate:
    """Admits callers with a valid credential whose role and scopes allow the route."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.keys = KnownKeys(store.api_keys)
        self.tokens = Tokens(settings) if settings.jwt_enabled else None
        self._failures = FailedLogins(FREE_FAILURES, longest_seconds=60, forgiven_seconds=300)
        #: Credentials that were valid when last checked, by their hash; an entry may have expired.
        self._known: OrderedDict[Digest, KnownKey | KnownToken] = OrderedDict()

    async def admit(self, call: Call, route: Route) -> Caller:
        """Return the caller, or raise the `ApiError` that rejects them: 401, 403, 404, 429 or 503."""
        right = route.right
        if right is Right.PUBLIC:
            return NOBODY
        header = header_of(call)
        if header is None:
            raise unauthorized(_MISSING)
        digest = (header[0], blake2b(header[1]).digest())
        known = self._known.get(digest)
        if known is None or not known.is_good():
            known = await self._checked(call, digest, credential_of(header))
        known.used = True
        call.is_known = known.is_good
        caller = known.caller
        # First, so that rejected requests count too.
        if caller.meter is not None:
            caller.meter.request()
        if right not in caller.rights:
            raise Forbidden(caller, right)
        if caller.scopes is not None:
            _check_path(call, caller, right)
        return caller

    async def _checked(self, call: Call, digest: Digest, credential: str) -> KnownKey | KnownToken:
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

    async def _verified(self, credential: str) -> KnownKey | KnownToken:
        if credential.startswith(f"{PREFIX}_"):
            return await self.keys.check(credential)
        if self.tokens is None:
            raise unauthorized("the credential is not an API key, and this broker does not accept tokens")
        caller, until = await self.tokens.check(credential)
        return KnownToken(caller, until, self.tokens.keys)


def _check_path(call: Call, caller: Caller, right: Right) -> None:
    """Raise 404 for a name in the path outside the caller's scopes, as if it did not exist."""
    parameter = {"queue": "queue", "job": "name"}.get(right.kind, "")
    name = call.path.get(parameter)
    if name is None:
        return
    own = name.removeprefix(f"{DEFAULT_NAMESPACE}.") if right.kind == "job" else name
    if not caller.may(right, own):
        raise not_found(f"{right.kind} {name} does not exist")
