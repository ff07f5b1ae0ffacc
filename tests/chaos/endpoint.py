"""An HTTP client for several brokers that fails over to the next one if there is no response."""

import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import httpx2

PATIENCE = 12.0
PAUSE = 0.2
BUSY = 429


class Endpoint:
    """A client that retries forever."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._clients = cycle([httpx2.Client(base_url=url, timeout=PATIENCE, verify=False) for url in urls])
        self._client = next(self._clients)

    def once(self, method: str, path: str, **request: Any) -> httpx2.Response | None:
        """Send a request once; return the response, or None if the outcome is unknown."""
        try:
            response = self._client.request(method, path, **request)
        except httpx2.TransportError:
            response = None
        if response is None or response.status_code >= 500 or response.status_code == BUSY:
            self._client = next(self._clients)
            time.sleep(PAUSE)
            return None
        if response.status_code not in (200, 201, 204):
            raise RuntimeError(f"{method} {path} was refused with {response.status_code}: {response.text}")
        return response

    def until_response(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """Send a request until there is a response, and return it."""
        while (response := self.once(method, path, **request)) is None:
            pass
        return response
