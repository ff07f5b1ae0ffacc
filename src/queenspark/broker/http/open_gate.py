"""The gate of a broker without access control: admits everybody except pages of other sites.

A browser sends the requests of any page to any broker that it reaches; CORS only keeps the page from reading
the responses. A page can also make its own host name resolve to this machine (DNS rebinding), and then is of
the same origin. With access control neither matters: browsers do not attach keys and tokens by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ...loopback import is_loopback, is_loopback_url
from ..errors import ApiError
from .call import Call
from .caller import ANONYMOUS, Caller
from .cors import Cors
from .right import Right
from .route import Route

_OF_BROWSERS = frozenset({b"origin", b"sec-fetch-site"})
_OWN_SITES = (b"same-origin", b"none")  # `none`: an address that the user typed
_MOST_HOSTS = 32  # cached


class OpenGate:
    """Admits every caller, with all rights, except pages of other sites.

    `host` is the listen address: on loopback, a request under another name is DNS rebinding.
    """

    def __init__(self, cors: Cors, host: str) -> None:
        self._cors = cors
        self._is_local = is_loopback(host)
        self._is_own_host = lru_cache(_MOST_HOSTS)(self._accepts_host)

    async def admit(self, call: Call, route: Route) -> Caller:
        """Return the anonymous caller, or raise 403; public routes are for every page."""
        if route.right is not Right.PUBLIC:
            self._check(call.header_pairs)
        return ANONYMOUS

    def _check(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        host, of_browser = b"", False
        for name, value in pairs:
            if name == b"host":
                host = value
            elif name in _OF_BROWSERS:
                of_browser = True
        if self._is_local and host and not self._is_own_host(host):
            raise _foreign_host(host.decode("latin-1"))
        if of_browser:
            found = dict(pairs)
            origin = found.get(b"origin")
            if not self._is_own_page(host, origin, found.get(b"sec-fetch-site")):
                raise _foreign_page((origin or b"").decode("latin-1"))

    def _is_own_page(self, host: bytes, origin: bytes | None, site: bytes | None) -> bool:
        if site in _OWN_SITES:
            return True
        if site is None and (origin is None or origin.partition(b"://")[2] == host.lower()):
            return True
        return self._cors.allows(None if origin is None else origin.decode("latin-1"))

    def _accepts_host(self, host: bytes) -> bool:
        name = host.decode("latin-1").lower()
        return is_loopback_url(f"//{name}") or self._cors.allows_host(name)


def _foreign_host(host: str) -> ApiError:
    return ApiError(
        403,
        f"this broker listens on loopback only, and {host!r} is not a loopback name: use localhost, or allow"
        " the name of a proxy with QUEENSPARK_CORS_ORIGINS, such as https://queue.example.org",
    )


def _foreign_page(origin: str) -> ApiError:
    page = f"a page of {origin}" if origin else "a page of another site"
    return ApiError(
        403,
        f"{page} may not use a broker without access control: allow its origin with QUEENSPARK_CORS_ORIGINS",
    )
