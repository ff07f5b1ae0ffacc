"""Tokens: JWTs with verified signature, times, issuer and audience, and their callers."""

from __future__ import annotations

import time
import warnings
from typing import Any

from joserfc import jwt
from joserfc.errors import ClaimError, JoseError, SecurityWarning
from joserfc.jws import extract_compact

from ...settings import Settings
from ..errors import ApiError
from ..http import Caller, ScopeError, parse_scopes
from .credential import UnknownKey, unauthorized
from .token_keys import TokenKeys

_ALGORITHMS = ("HS256", "RS256", "ES256", "EdDSA")
_MOST_NAME = 255


class Tokens:
    """Verifies tokens."""

    def __init__(self, settings: Settings) -> None:
        self.keys = TokenKeys(settings)
        self._settings = settings
        self._roles = {
            settings.jwt_role_read_only: "read-only",
            settings.jwt_role_read_write: "read-write",
            settings.jwt_role_admin: "admin",
        }

    async def check(self, text: str) -> tuple[Caller, float]:
        """Return the caller of a token and its expiry, or raise 401."""
        algorithm, key_id = _header(text)
        keys, is_certain = self.keys.of(algorithm, key_id), True
        if not keys:
            is_certain = await self.keys.reread()
            keys = self.keys.of(algorithm, key_id)
        if not keys:
            if not self.keys.ready:
                raise ApiError(503, "the keys for tokens are not loaded yet: try again", retry_after=1)
            error = unauthorized if is_certain else UnknownKey
            raise error("the token is signed with an unknown key or algorithm")
        for key in keys:
            claims = _verified(text, key.key, algorithm)
            if claims is not None:
                return self._caller(claims)
        raise unauthorized("the signature of the token is invalid")

    def _caller(self, claims: dict[str, Any]) -> tuple[Caller, float]:
        settings = self._settings
        wanted: dict[str, Any] = {"exp": {"essential": True}}
        if settings.jwt_issuer is not None:
            wanted["iss"] = {"essential": True, "value": settings.jwt_issuer}
        if settings.jwt_audience is not None:
            wanted["aud"] = {"essential": True, "value": settings.jwt_audience}
        registry = jwt.JWTClaimsRegistry(leeway=int(settings.jwt_clock_skew), **wanted)
        try:
            registry.validate(claims)
            until = float(claims["exp"]) + settings.jwt_clock_skew
        except ClaimError as error:
            raise unauthorized(_reason(error)) from None
        except (TypeError, ValueError, OverflowError):
            raise unauthorized("a claim of the token has the wrong type") from None
        if until <= time.time():
            raise unauthorized("the token has expired: get a new one")
        name = claims.get("sub")
        if not isinstance(name, str) or not name or len(name) > _MOST_NAME or not name.isprintable():
            raise unauthorized(f"`sub` of the token must be a name of 1 to {_MOST_NAME} characters")
        try:
            scopes = self._scopes(claims)
        except ScopeError as error:
            raise unauthorized(f"the token's {error}") from None
        return Caller.known(name, "token", self._role(claims), scopes), until

    def _role(self, claims: dict[str, Any]) -> str | None:
        """Return the strongest known role of a token."""
        one, several = (
            claims.get(self._settings.jwt_roles_claim),
            claims.get(self._settings.jwt_roles_array_claim),
        )
        named = [*(several if isinstance(several, list) else [several]), one]
        held = {self._roles.get(name) for name in named if isinstance(name, str)}
        return next((role for role in ("admin", "read-write", "read-only") if role in held), None)

    def _scopes(self, claims: dict[str, Any]) -> Any:
        texts = claims.get(self._settings.jwt_scopes_claim)
        if texts is None:
            return None
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ScopeError(f"{self._settings.jwt_scopes_claim} must be an array of strings")
        return parse_scopes(texts)


def _header(text: str) -> tuple[str, str | None]:
    """Return the algorithm and key id claimed by a token."""
    try:
        header = extract_compact(text.encode()).headers()
    except (JoseError, ValueError, TypeError):
        raise unauthorized("the credential is neither an API key of this system nor a token") from None
    algorithm, id_ = header.get("alg"), header.get("kid")
    if algorithm == "Ed25519":
        algorithm = "EdDSA"
    if algorithm not in _ALGORITHMS:
        raise unauthorized("the algorithm of the token is not accepted")
    if "crit" in header or (id_ is not None and not isinstance(id_, str)):
        raise unauthorized("the header of the token is invalid")
    return algorithm, id_


def _verified(text: str, key: Any, algorithm: str) -> dict[str, Any] | None:
    """Return the claims of a token if this key signed it."""
    names = ["EdDSA", "Ed25519"] if algorithm == "EdDSA" else [algorithm]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # old name of EdDSA
            return dict(jwt.decode(text, key, algorithms=names).claims)
    except (JoseError, ValueError, TypeError):
        return None


def _reason(error: ClaimError) -> str:
    match error.error:
        case "expired_token":
            return "the token has expired: get a new one"
        case "missing_claim":
            return f"the token lacks the claim {error.claim}"
        case _:
            return f"the claim {error.claim} of the token is not accepted"
