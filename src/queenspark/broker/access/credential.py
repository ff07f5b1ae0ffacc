"""The credential of a request: an API key or a token, in one of two headers."""

from __future__ import annotations

from ..errors import ApiError
from ..http import Call

MOST_BYTES = 16 * 1024


def credential_of(call: Call) -> str | None:
    """The credential that a request carries, None when it has none; 401 when it is not clear which it is."""
    found: list[bytes] = []
    for name, value in call.header_pairs:
        if name == b"authorization":
            scheme, _, rest = value.strip().partition(b" ")
            if scheme.lower() != b"bearer" or not rest.strip():
                raise unauthorized(
                    "the header Authorization must be `Bearer`, a space, and an API key or token"
                )
            found.append(rest.strip())
        elif name == b"x-api-key":
            found.append(value.strip())
    if not found:
        return None
    if len(found) > 1:
        raise unauthorized("the request has several credentials: send one, in one header")
    (credential,) = found
    if len(credential) > MOST_BYTES or not credential.isascii():
        raise unauthorized("the credential is too long, or not ASCII")
    return credential.decode("ascii")


def unauthorized(message: str) -> ApiError:
    """401: who the caller is, is not known."""
    return ApiError(401, message)
