"""The credential of a request: an API key or a token, in one of two headers."""

from __future__ import annotations

from ..errors import ApiError
from ..http import Call

MOST_BYTES = 16 * 1024
_HEADERS = frozenset({b"authorization", b"x-api-key"})

Header = tuple[bytes, bytes]


def header_of(call: Call) -> Header | None:
    """Return the header that carries the credential, or None; raise 401 if there are several."""
    found: Header | None = None
    for pair in call.header_pairs:
        if pair[0] in _HEADERS:
            if found is not None:
                raise unauthorized("the request has several credentials: send one, in one header")
            found = pair
    return found


def credential_of(header: Header) -> str:
    """Extract the credential from a header, or raise 401."""
    name, value = header
    credential = value.strip()
    if name == b"authorization":
        scheme, _, credential = credential.partition(b" ")
        credential = credential.strip()
        if scheme.lower() != b"bearer" or not credential:
            raise unauthorized("the header Authorization must be `Bearer` followed by an API key or token")
    if len(credential) > MOST_BYTES or not credential.isascii():
        raise unauthorized("the credential is too long, or not ASCII")
    return credential.decode("ascii")


def unauthorized(message: str) -> ApiError:
    """401: the caller is unknown."""
    return ApiError(401, message)


class UnknownKey(ApiError):
    """401 that is not a failed login: the key of the token may be newer than the keys last read."""

    def __init__(self, message: str) -> None:
        super().__init__(401, message)
