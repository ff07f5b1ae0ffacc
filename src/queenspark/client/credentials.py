"""The client's identity (API key or token) and its TLS certificates."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from .errors import InvalidValue, QueenError

Token = str | Callable[[], str]
"""A token, or a function that returns one; it is called before every request, so tokens can be rotated."""

Headers = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""Additional headers of every request, or a function that returns them before each."""

File = str | Path


class TokenFailed(QueenError):
    """The token function raised; the client turns this into Unreachable, after retries."""


class Credentials(NamedTuple):
    """The secret sent with each request, and the TLS files."""

    secret: Token | None = None
    ca: File | None = None
    certificate: tuple[File, File] | None = None

    def __repr__(self) -> str:
        return f"Credentials({'' if self.secret is None else 'secret=…'})"

    def headers(self) -> dict[str, str]:
        """The authorization headers."""
        if self.secret is None:
            return {}
        secret = self.secret if isinstance(self.secret, str) else _called(self.secret)
        if not secret.isascii() or not secret.isprintable():
            raise InvalidValue("the API key or token has characters that cannot be sent: copy it again")
        return {"Authorization": f"Bearer {secret}"}

    def context(self) -> ssl.SSLContext | bool:
        """The TLS context for connections; True for the system default."""
        if self.ca is None and self.certificate is None:
            return True
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(*self.certificate)
        except OSError as error:
            files = ", ".join(str(file) for file in (self.ca, *(self.certificate or ())) if file is not None)
            raise InvalidValue(f"cannot read certificates from {files}: {error}") from None
        return context


def _called(token: Callable[[], str]) -> str:
    try:
        secret: object = token()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise TokenFailed(
            f"the token function failed ({reason}): it is called before each request"
        ) from error
    if not isinstance(secret, str):
        raise InvalidValue(f"the token function returned {secret!r}: return a string")
    return secret


def credentials(
    api_key: str | None = None,
    token: Token | None = None,
    ca: File | None = None,
    certificate: tuple[File, File] | None = None,
    env: Mapping[str, str] = os.environ,
) -> Credentials:
    """Build credentials from arguments, falling back to environment variables."""

    def variable(name: str) -> str | None:
        return env.get(f"QUEENSPARK_{name}", "").strip() or None

    if api_key is not None and token is not None:
        raise InvalidValue("api_key and token are both set: pass only one of them")
    secret = api_key or token or variable("API_KEY") or variable("TOKEN")
    own, key = variable("CLIENT_CERTIFICATE"), variable("CLIENT_KEY")
    if certificate is None and own is not None:
        certificate = (own, key or own)
    return Credentials(secret, ca or variable("CA"), certificate)
