"""Verification keys of tokens. Each is bound to one algorithm, whatever the token claims."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import httpx2
import msgspec
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey, import_key

from ...settings import Settings, SettingsError, variable, without_userinfo

log = logging.getLogger("queenspark.broker")

_MOST_BYTES = 1024 * 1024  # of a JWKS
_RETRY_SECONDS = 5.0
_AGAIN_SECONDS = 10.0  # between reads triggered by unknown key ids
_RSA_BITS = 2048
_PEM_KINDS = (RSAKey, ECKey, OKPKey)


class BoundKey(NamedTuple):
    """A key and its only algorithm."""

    algorithm: str
    id: str | None
    key: Any


def bind(key: Any, id_: str | None = None) -> BoundKey | None:
    """Bind a key to the algorithm of its type; None if there is no supported algorithm."""
    match key:
        case OctKey():
            return BoundKey("HS256", id_, key)
        case RSAKey() if key.raw_value.key_size >= _RSA_BITS:
            return BoundKey("RS256", id_, key)
        case ECKey() if key.curve_name == "P-256":
            return BoundKey("ES256", id_, key)
        case OKPKey() if key.curve_name == "Ed25519":
            return BoundKey("EdDSA", id_, key)
        case _:
            return None


def static_keys(settings: Settings) -> list[BoundKey]:
    """Load the keys given in the settings. Raises SettingsError."""
    keys: list[BoundKey] = []
    if settings.jwt_secret is not None:
        try:
            keys.append(BoundKey("HS256", None, OctKey.import_key(settings.jwt_secret.encode())))
        except ValueError:
            raise SettingsError(
                f"{variable('jwt_secret')} is a public key, not a secret: set it as"
                f" {variable('jwt_public_key')}"
            ) from None
    if settings.jwt_public_key is not None:
        bound = _from_pem(settings.jwt_public_key.replace("\\n", "\n"))
        if bound is None:
            raise SettingsError(
                f"{variable('jwt_public_key')} is not a public key of RSA (2048 bits or more), P-256 or"
                " Ed25519 in PEM; write its lines as they are, or with \\n between them"
            )
        keys.append(bound)
    return allowed(keys, settings.jwt_algorithm)


def _from_pem(text: str) -> BoundKey | None:
    for kind in _PEM_KINDS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SecurityWarning)  # for short keys, which are rejected anyway
                return bind(kind.import_key(text))
        except (JoseError, ValueError, TypeError, AttributeError):
            continue
    return None


def allowed(keys: Iterable[BoundKey], algorithm: str) -> list[BoundKey]:
    """Filter keys by the accepted algorithm."""
    return [key for key in keys if algorithm in ("auto", key.algorithm)]


def read_jwks(text: bytes, algorithm: str) -> list[BoundKey]:
    """Parse the usable keys of a JWKS; symmetric secrets are ignored. Raises ValueError."""
    document = msgspec.json.decode(text)
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise ValueError("it is not an object with `keys`")
    found: list[BoundKey] = []
    for entry in document["keys"]:
        if not isinstance(entry, dict) or entry.get("kty") == "oct" or entry.get("use", "sig") != "sig":
            continue
        try:
            bound = bind(import_key(entry), entry.get("kid"))
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if bound is not None and entry.get("alg", bound.algorithm) in _names(bound.algorithm):
            found.append(bound)
    return allowed(found, algorithm)


def _names(algorithm: str) -> tuple[str, ...]:
    return ("EdDSA", "Ed25519") if algorithm == "EdDSA" else (algorithm,)


class TokenKeys:
    """All verification keys: those in the settings, and those of the JWKS, which is polled."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._static = static_keys(settings)
        self._published: list[BoundKey] = []
        self._tried_at = -math.inf
        self._read_at = -math.inf
        self._reading = asyncio.Lock()
        #: Number of key changes.
        self.version = 0
        #: Whether the JWKS, if configured, was read.
        self.ready = settings.jwt_jwks_url is None

    def of(self, algorithm: str, id_: str | None) -> Sequence[BoundKey]:
        """Return the keys for an algorithm; with an id, that key and those without an id."""
        return [
            key
            for key in (*self._static, *self._published)
            if key.algorithm == algorithm and (id_ is None or key.id in (None, id_))
        ]

    async def keep_reading(self) -> None:
        """Poll the JWKS."""
        while self._settings.jwt_jwks_url is not None:
            async with self._reading:
                await self._read(self._settings.jwt_jwks_url)
            pause = self._settings.jwt_jwks_refresh_interval if self.ready else _RETRY_SECONDS
            await asyncio.sleep(pause)

    async def reread(self) -> bool:
        """Read the JWKS again for an unknown key id, as the issuer may have rotated keys. Rate limited.

        Waits for a read in flight. Returns whether an id that is still unknown is certainly not published.
        """
        url = self._settings.jwt_jwks_url
        if url is None:
            return True
        async with self._reading:
            return time.monotonic() - self._tried_at > _AGAIN_SECONDS and await self._read(url)

    async def _read(self, url: str) -> bool:
        settings = self._settings
        self._tried_at = time.monotonic()
        try:
            text = await _fetch(url, settings.jwt_jwks_timeout_ms / 1000)
            keys = read_jwks(text, settings.jwt_algorithm)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError) as error:
            age = time.monotonic() - self._read_at
            log.warning(
                "cannot read the token keys from %s: %s%s",
                without_userinfo(url),
                str(error) or type(error).__name__,
                f"; those read {age:.0f} s ago stay in use" if self.ready else "",
            )
            return False
        if not keys:
            log.warning("%s has no usable key", without_userinfo(url))
        before = [(key.algorithm, key.id, key.key.thumbprint()) for key in self._published]
        after = [(key.algorithm, key.id, key.key.thumbprint()) for key in keys]
        self._published = keys
        self._read_at = time.monotonic()
        self.ready = True
        if before != after:
            self.version += 1
        return True


async def _fetch(url: str, seconds: float) -> bytes:
    async with (
        asyncio.timeout(seconds),
        httpx2.AsyncClient(follow_redirects=False, timeout=seconds) as client,
        client.stream("GET", url) as response,
    ):
        if response.status_code != httpx2.codes.OK:
            raise ValueError(f"it responded with status {response.status_code}")
        text = b""
        async for part in response.aiter_bytes():
            text += part
            if len(text) > _MOST_BYTES:
                raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
        return text
