"""The broker's HTTP API, as the commands see it."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2
import msgspec

from queenspark.cli.exits import Exit, Failure
from queenspark.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANSWER_SECONDS = 30.0

Query = Mapping[str, Any]


class BrokerApi:
    """A connection to a broker; whatever goes wrong becomes a `Failure` of one sentence."""

    def __init__(self, url: str | None) -> None:
        self.url = Settings.from_env(url=url).url.rstrip("/")
        through_proxy = httpx2.URL(self.url).host not in LOOPBACK
        self._client = httpx2.Client(trust_env=through_proxy)

    def get(self, *path: str, query: Query | None = None, patience: float = 0.0) -> Any:
        """The answer to a GET, None for 204; `patience` is how long the broker may take on purpose."""
        return self._call("GET", path, query or {}, patience=patience)

    def post(self, *path: str, body: Any = None, query: Query | None = None) -> Any:
        """The answer to a POST."""
        return self._call("POST", path, query or {}, body)

    def delete(self, *path: str, query: Query | None = None) -> Any:
        """The answer to a DELETE."""
        return self._call("DELETE", path, query or {})

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the broker is well, and what it says about it."""
        response = self._send("GET", ("health",), {})
        answer = self._decode(response)
        return response.status_code == httpx2.codes.OK, answer if isinstance(answer, dict) else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def _call(
        self, method: str, path: tuple[str, ...], query: Query, body: Any = None, patience: float = 0.0
    ) -> Any:
        response = self._send(method, ("api", "v1", *path), query, body, patience)
        answer = self._decode(response)
        if response.status_code < httpx2.codes.BAD_REQUEST:
            return answer
        reason = answer.get("error") if isinstance(answer, dict) else None
        raise Failure(f"The broker refused: {reason or f'status {response.status_code}'}")

    def _send(
        self, method: str, path: tuple[str, ...], query: Query, body: Any = None, patience: float = 0.0
    ) -> httpx2.Response:
        url = "/".join([self.url, *(quote(part, safe="") for part in path)])
        parameters = {name: _text(value) for name, value in query.items() if value is not None}
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if content is not None else {}
        try:
            return self._client.request(
                method,
                url,
                params=parameters,
                content=content,
                headers=headers,
                timeout=ANSWER_SECONDS + patience,
            )
        except httpx2.TimeoutException:
            raise Failure(f"The broker at {self.url} did not answer in time.", Exit.UNREACHABLE) from None
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise Failure(
                f"No broker answers at {self.url} ({error}): start one with `queenspark up`, "
                "or say where it is with --url.",
                Exit.UNREACHABLE,
            ) from None

    def _decode(self, response: httpx2.Response) -> Any:
        if response.status_code == httpx2.codes.NO_CONTENT or not response.content:
            return None
        try:
            return msgspec.json.decode(response.content)
        except msgspec.DecodeError:
            raise Failure(f"What answers at {self.url} is not a Queenspark broker.") from None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
