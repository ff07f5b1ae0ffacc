# Made from aio/transport.py by `make format`: change that file, not this one.
"""HTTP requests to the brokers: failover, safe retries, and error mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec

from ..brokers import Brokers, delay, shown
from ..credentials import Credentials, Headers, TokenFailed
from ..errors import InvalidValue, QueenError, Unreachable, refusal
from .lines import Lines
from .tasks import sleep

_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_LOCAL = ("127.0.0.1", "localhost", "::1")
_JSON = {"Content-Type": "application/json"}
_LINES = "application/x-ndjson"
SILENCE_SECONDS = 30.0
"""A broker sends a line or a keepalive every few seconds; after this silence the connection counts as lost.
"""


class Transport:
    """Sends HTTP requests to one of several brokers."""

    def __init__(
        self,
        brokers: Brokers,
        *,
        timeout: float,
        retries: int,
        credentials: Credentials | None = None,
        headers: Headers | None = None,
    ) -> None:
        self._brokers = brokers
        self._headers = headers or {}
        self._credentials = credentials or Credentials()
        self._timeout = timeout
        #: Default number of retries of a failed request.
        self.retries = retries
        local = httpx2.URL(brokers.current).host in _LOCAL
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        # Otherwise the user and password of a URL would replace the API key or token.
        auth = None if self._credentials.secret is None else httpx2.Auth()
        self._http = httpx2.Client(
            trust_env=not local, limits=limits, verify=self._credentials.context(), auth=auth
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(
        self,
        method: str,
        *path: str,
        base: Sequence[str] = ("api", "v1"),
        kind: Any = Any,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        patience: float = 0.0,
        within: float | None = None,
        repeatable: bool = True,
        retries: int | None = None,
        may_be_lines: bool = False,
        on_nothing: Callable[[Mapping[str, str]], None] | None = None,
    ) -> Any:
        """Return the broker's response as `kind`, None for 204. Transient errors are retried.

        `within` replaces the client's timeout; `patience` is added for long polls. Unless `repeatable`, a
        request is retried only when it certainly was not carried out. With `may_be_lines`, a response of JSON
        lines is returned as `Lines`, which the caller closes. `on_nothing` gets the headers of a 204.
        """
        if self._http.is_closed:
            raise QueenError("the client is closed")
        try:
            content = None if body is None else msgspec.json.encode(body)
            where = "/".join(quote(part, safe="") for part in (*base, *path))
            parameters = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"the request cannot be serialized: {error}") from error
        most = self.retries if retries is None else retries
        failures = 0
        maybe_done = False
        while True:
            url = self._brokers.current
            try:
                request = self._http.build_request(
                    method,
                    f"{url}/{where}",
                    params=parameters,
                    content=content,
                    headers={
                        **(self._headers() if callable(self._headers) else self._headers),
                        **self._credentials.headers(),
                        **(_JSON if content is not None else {}),
                    },
                    timeout=(self._timeout if within is None else within) + patience,
                )
                response = self._http.send(request, stream=may_be_lines)
                if may_be_lines:
                    if response.headers.get("Content-Type") == _LINES:
                        request.extensions["timeout"]["read"] = SILENCE_SECONDS
                        return Lines(response, shown(url))
                    response.read()
                found = _read(response, shown(url), kind)
                if on_nothing is not None and response.status_code == httpx2.codes.NO_CONTENT:
                    on_nothing(response.headers)
                return found
            except httpx2.InvalidURL as error:
                raise InvalidValue(f"url is {shown(url)!r}: {error}") from None
            except TokenFailed as error:
                failure: QueenError = Unreachable(str(error), maybe_done=maybe_done)
                failure.__cause__ = error.__cause__
                again = True
                pause = delay(failures + 1)
            except httpx2.RequestError as error:
                self._brokers.leave(url)
                sent = not isinstance(error, _NEVER_SENT)
                maybe_done = maybe_done or sent
                failure = Unreachable(_no_response(shown(url), error), maybe_done=maybe_done)
                again = repeatable or not sent
                pause = 0.0
            except _Passing as passing:
                full = passing.status == httpx2.codes.TOO_MANY_REQUESTS
                if not full:
                    self._brokers.leave(url)
                failure = passing.error
                again = repeatable or full
                pause = passing.pause
            failures += 1
            if not again or failures > most:
                raise failure from failure.__cause__
            if pause or failures % len(self._brokers) == 0:
                sleep(max(pause, delay(failures)))


class _Passing(Exception):
    """A transient error response: the same request may succeed later."""

    def __init__(self, error: QueenError, status: int, pause: float) -> None:
        super().__init__()
        self.error = error
        self.status = status
        self.pause = pause


def _read(response: httpx2.Response, url: str, kind: Any) -> Any:
    status = response.status_code
    if status == httpx2.codes.NO_CONTENT:
        return None
    if status < httpx2.codes.BAD_REQUEST:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.MsgspecError as error:
            raise QueenError(f"the server at {url} is not a Queenspark broker: {error}") from None
    try:
        body = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        body = {}
    refused = refusal(status, body if isinstance(body, dict) else {})
    if status == httpx2.codes.TOO_MANY_REQUESTS or status >= httpx2.codes.INTERNAL_SERVER_ERROR:
        pause = response.headers.get("Retry-After", "")
        raise _Passing(refused, status, min(float(pause), 5.0) if pause.isdecimal() else 0.0)
    raise refused


def _no_response(url: str, error: httpx2.RequestError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return f"the broker at {url} did not respond in time: check its health"
    reason = str(error) or type(error).__name__
    return f"no broker at {url} ({reason}): start one with `queenspark up`"


def _text(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text.encode()  # raises if it cannot be sent
    return text
