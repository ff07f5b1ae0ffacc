"""Who the client is: an API key or a token, and the certificates of TLS."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from .errors import InvalidValue

Token = str | Callable[[], str]
"""A token, or a function that gives one; it is asked before every request, so that tokens can be renewed."""

File = str | Path


class Credentials(NamedTuple):
    """What a request carries, and whom the client trusts."""

    secret: Token | None = None
    ca: File | None = None
    certificate: tuple[File, File] | None = None

    def __repr__(self) -> str:
        return f"Credentials({'' if self.secret is None else 'secret=…'})"

    def headers(self) -> dict[str, str]:
        """The headers that say who the client is."""
        if self.secret is None:
            return {}
        secret = self.secret if isinstance(self.secret, str) else self.secret()
        if not secret.isascii() or not secret.isprintable():
            raise InvalidValue("the API key or token has characters that cannot be sent: copy it again")
        return {"Authorization": f"Bearer {secret}"}

    def context(self) -> ssl.SSLContext | bool:
        """How connections with TLS are made: True for the usual way."""
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


def credentials(
    api_key: str | None = None,
    token: Token | None = None,
    ca: File | None = None,
    certificate: tuple[File, File] | None = None,
    env: Mapping[str, str] = os.environ,
) -> Credentials:
    """Credentials from arguments, and where these are missing from the environment."""

    def variable(name: str) -> str | None:
        return env.get(f"QUEENSPARK_{name}", "").strip() or None

    if api_key is not None and token is not None:
        raise InvalidValue("api_key and token are both set: pass only one of them")
    secret = api_key or token or variable("API_KEY") or variable("TOKEN")
    own, key = variable("CLIENT_CERTIFICATE"), variable("CLIENT_KEY")
    if certificate is None and own is not None:
        certificate = (own, key or own)
    return Credentials(secret, ca or variable("CA"), certificate)
