"""The table of routes: which one a method and a path lead to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from ..errors import ApiError, bad_request, not_found
from .route import Route


class Match(NamedTuple):
    """A route, taken apart for quick comparison."""

    route: Route
    segments: tuple[str, ...]
    decoder: msgspec.json.Decoder[Any] | None

    def fits(self, segments: list[str]) -> bool:
        """Whether a path of as many segments leads here."""
        return all(
            bool(given) if wanted.startswith(":") else wanted == given
            for wanted, given in zip(self.segments, segments, strict=True)
        )


class Router:
    """Finds routes: those without parameters at once, the others by their number of segments."""

    def __init__(self, routes: Iterable[Route], not_served: Mapping[str, str] | None = None) -> None:
        #: Beginnings of paths that some clients ask for, and why there is nothing.
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
        """The route of a request with its parameters, or 404 or 405."""
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
        """The methods that a path takes, none when there is nothing at it."""
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
