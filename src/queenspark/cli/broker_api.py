"""The broker's HTTP API, as the commands see it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import msgspec

from queenspark.cli.exits import Exit, Failure
from queenspark.client.brokers import Brokers
from queenspark.client.credentials import credentials
from queenspark.client.errors import (
    NotAllowed,
    NotFound,
    QueenError,
    Refused,
    SqlError,
    Unavailable,
    Unreachable,
)
from queenspark.client.sync.lines import Lines
from queenspark.client.sync.transport import Transport
from queenspark.settings import Settings

RESPONSE_SECONDS = 30.0
_WHO = "Set QUEENSPARK_API_KEY or QUEENSPARK_TOKEN; `queenspark me` shows your identity."

Query = Mapping[str, Any]


class _SqlResponse(msgspec.Struct):
    results: list[msgspec.Raw]


class BrokerApi:
    """The client's transport without retries; errors become a `Failure` with one sentence."""

    def __init__(self, url: str | None) -> None:
        self.url = Settings.from_env(url=url).url.rstrip("/")
        with failures():
            self._transport = Transport(
                Brokers(self.url), timeout=RESPONSE_SECONDS, retries=0, credentials=credentials()
            )

    def get(self, *path: str, query: Query | None = None, patience: float = 0.0, kind: Any = Any) -> Any:
        """Send a GET; None for 204. `patience` is the time the broker may wait on purpose."""
        return self._call("GET", *path, query=query, patience=patience, kind=kind)

    def exists(self, *path: str) -> bool:
        """Whether a GET does not return 404."""
        return not isinstance(self._call("GET", *path, but=NotFound), NotFound)

    def post(self, *path: str, body: Any = None, query: Query | None = None) -> Any:
        """Send a POST."""
        return self._call("POST", *path, query=query, body=body)

    def delete(self, *path: str, query: Query | None = None) -> Any:
        """Send a DELETE."""
        return self._call("DELETE", *path, query=query)

    def sql(
        self, statements: str, *, dry_run: bool = False, timeout: float | None = None
    ) -> Lines | list[msgspec.Raw]:
        """The results of statements as they were sent, or the lines of a SELECT. Raises SqlError too.

        After `timeout` seconds the broker ends a SELECT.
        """
        milliseconds = None if timeout is None else round(timeout * 1000)
        body = {"sql": statements, "dryRun": dry_run, "timeout": milliseconds}
        with failures():
            response = self._transport.call("POST", "sql", body=body, kind=_SqlResponse, may_be_lines=True)
        return response if isinstance(response, Lines) else list(response.results)

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the broker is healthy, and its report."""
        response = self._call("GET", "health", base=(), but=Unavailable)
        if isinstance(response, Unavailable):
            return False, response.response
        return True, response if isinstance(response, dict) else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    def _call(self, method: str, *path: str, but: type[Refused] | None = None, **more: Any) -> Any:
        """The broker's response, or its refusal if it is a `but`."""
        with failures():
            try:
                return self._transport.call(method, *path, **more)
            except Refused as refused:
                if but is not None and isinstance(refused, but):
                    return refused
                raise


@contextmanager
def failures() -> Iterator[None]:
    """Turn errors into a `Failure`; a SqlError passes through to the caller, which has the text."""
    try:
        yield
    except SqlError:
        raise
    except Unreachable as error:
        raise Failure(f"{_sentence(error)}, or set the address with --url.", Exit.UNREACHABLE) from None
    except NotAllowed as refused:
        raise Failure(f"The broker rejected the request: {refused}. {_WHO}") from None
    except Refused as refused:
        raise Failure(f"The broker rejected the request: {refused}") from None
    except QueenError as error:
        raise Failure(_sentence(error)) from None


def _sentence(error: QueenError) -> str:
    text = str(error)
    return text[:1].upper() + text[1:]
