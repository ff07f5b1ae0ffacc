"""CORS: pages of other sites may read responses only if a setting lists their origin."""

from __future__ import annotations

from collections.abc import Sequence

from .call import Headers
from .response import Pairs

ANY = "*"

_VARY = (b"vary", b"origin")
_EXPOSED = (b"access-control-expose-headers", b"retry-after")
#: The star covers every header except this one.
_REQUEST_HEADERS = (b"access-control-allow-headers", b"*, authorization")
_MAX_AGE = (b"access-control-max-age", b"86400")


class Cors:
    """The allowed origins: a list, all (`*`), or none."""

    def __init__(self, origins: Sequence[str] = ()) -> None:
        self._origins = frozenset(origins)
        self._hosts = frozenset(origin.partition("://")[2] for origin in origins)
        #: False: no response carries CORS headers.
        self.open = bool(origins)

    def allows(self, origin: str | None) -> bool:
        """Whether pages of an origin, which may be unknown, may use the API."""
        return ANY in self._origins or origin in self._origins

    def allows_host(self, host: str) -> bool:
        """Whether pages of some origin with this host and port may use the API."""
        return ANY in self._origins or host in self._hosts

    def permission(self, headers: Headers) -> Pairs:
        """Return the headers that let the requesting page read its response."""
        if ANY in self._origins:
            return ((b"access-control-allow-origin", b"*"), _EXPOSED)
        origin = headers.get("origin")
        if origin not in self._origins:
            return (_VARY,)
        return ((b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED, _VARY)

    def preflight(self, headers: Headers, allowed: Sequence[str]) -> Pairs:
        """Return the additional headers of a preflight response."""
        asks = "origin" in headers and "access-control-request-method" in headers
        if not asks or not self.allows(headers["origin"]):
            return ()
        return ((b"access-control-allow-methods", ", ".join(allowed).encode()), _REQUEST_HEADERS, _MAX_AGE)
