"""The route table: lookup by method and path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from ..errors import ApiError, bad_request, not_found
from .route import Route


class Match(NamedTuple):
    """A route, split into segments for fast matching."""

    route: Route
    segments: tuple[str, ...]
    decoder: msgspec.json.Decoder[Any] | None

    def fits(self, segments: list[str]) -> bool:
        """Whether a path with this many segments matches."""
        return all(
            bool(given) if wanted.startswith(":") else wanted == given
            for wanted, given in zip(self.segments, segments, strict=True)
        )


class Router:
    """Finds routes: those without parameters by path, the others by number of segments."""

    def __init__(self, routes: Iterable[Route], not_served: Mapping[str, str] | None = None) -> None:
        #: Path prefixes that are deliberately not served, with the reason.
        self._not_served = not_served or {}
        self._exact: dict[tuple[str, str], Match] = {}
        self._shaped: dict[tuple[str, int], list[Match]] = {}
        methods: dict[str, None] = {}
        for route in routes:
            segments = tuple(route.path.split("/"))
            decoder = msgspec.json.Decoder(route.body) if route.body is not None else None
            match = Match(route, segments, decoder)
            if ":" in route.path:
                self._shaped.setdefault((route.method, len(segments)), []).append(match)
            else:
                self._exact[route.method, route.path] = match
            methods[route.method] = None
        self._methods = tuple(methods)

    def find(self, method: str, path: str) -> tuple[Match, dict[str, str]]:
        """Return the route of a request with its parameters, or raise 404 or 405."""
        if exact := self._exact.get((method, path)):
            return exact, {}
        if found := self._find(method, path):
            return found
        if allowed := self.allowed(path):
            raise ApiError(405, f"{method} is not allowed here: use {' or '.join(allowed)}", allow=allowed)
        for prefix, reason in self._not_served.items():
            if path.startswith(prefix):
                raise not_found(reason)
        raise not_found(f"no such route: {_unquote(path)}")

    def allowed(self, path: str) -> tuple[str, ...]:
        """The methods of a path; empty if there is no route."""
        found = [method for method in self._methods if path == "*" or self._find(method, path)]
        if not found:
            return ()
        if "GET" in found:
            found.insert(found.index("GET") + 1, "HEAD")
        return (*found, "OPTIONS")

    def _find(self, method: str, path: str) -> tuple[Match, dict[str, str]] | None:
        path = path.rstrip("/") or "/"
        segments = path.split("/")
        if exact := self._exact.get((method, path)):
            return exact, {}
        for match in self._shaped.get((method, len(segments)), ()):
            if match.fits(segments):
                pairs = zip(match.segments, segments, strict=True)
                return match, {name[1:]: _unquote(given) for name, given in pairs if name.startswith(":")}
        return None


def _unquote(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise bad_request("the path is not valid UTF-8") from error
