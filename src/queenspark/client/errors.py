"""All exceptions of the client, in one tree.

```
QueenError
├── InvalidValue          an argument is invalid (also a ValueError); nothing was sent
├── Unreachable           no broker sent a complete response, or the token function failed
├── Refused               the broker rejected the request
│   ├── NotFound          the queue, stream, group or message does not exist
│   ├── SqlError          a statement is invalid or its query failed: line, column
│   ├── TooLarge          the request or a payload is too large
│   ├── NotAllowed        the caller is unknown or lacks the right
│   ├── RateLimited       the API key exceeded its rate limit; retry later
│   ├── QueueFull         the queue reached its max_size; retry later
│   └── Unavailable       the broker cannot serve requests now, for instance because PostgreSQL is down
├── LeaseLost             the lease expired: the message or window is redelivered to another consumer
├── TransactionRefused    the transaction was rejected as a whole
├── InDoubt               the outcome is unknown: the response was lost, then the lease expired
├── BufferFull            the push buffer stayed full for too long
└── NotSent               items of the push buffer could not be sent
```
"""

from __future__ import annotations

from typing import Any


class QueenError(Exception):
    """Base class of all client errors."""


class InvalidValue(QueenError, ValueError):
    """An argument is invalid; the message names it and states the valid values."""


class Unreachable(QueenError):
    """No broker sent a complete response, or the token function failed.

    `maybe_done`: the request may have been carried out.
    """

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class Refused(QueenError):
    """The broker rejected the request; the message is the broker's, `response` its whole response."""

    def __init__(self, message: str, status: int, code: str, response: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.response = response


class NotFound(Refused):
    """The queue, stream, group or message does not exist."""


class SqlError(Refused):
    """A statement is invalid at `line` and `column`, counted from 1; both are None when a query failed."""

    @property
    def line(self) -> int | None:
        """The line within the submitted statements."""
        return _whole(self.response.get("line"))

    @property
    def column(self) -> int | None:
        """The column within that line."""
        return _whole(self.response.get("column"))


class TooLarge(Refused):
    """The request or a payload is too large."""


class NotAllowed(Refused):
    """The caller is unknown (status 401) or lacks the right (403)."""


class RateLimited(Refused):
    """The API key exceeded its limit of requests or messages per second."""


class QueueFull(Refused):
    """The queue reached its `max_size`; retry later."""


class Unavailable(Refused):
    """The broker cannot serve requests now."""


class LeaseLost(QueenError):
    """The lease expired: the message or window is redelivered to another consumer."""


class TransactionRefused(QueenError):
    """The transaction was rejected as a whole; `code` is the reason, as in the HTTP API."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class InDoubt(QueenError):
    """The outcome is unknown: the response was lost, then the lease expired."""


class BufferFull(QueenError):
    """The push buffer stayed full for too long; no item of this push was accepted."""


class NotSent(QueenError):
    """Items of the push buffer could not be sent; `payloads` are those no longer in the buffer."""

    def __init__(self, message: str, payloads: list[object]) -> None:
        super().__init__(message)
        self.payloads = payloads


#: Transient errors: the same request may succeed later.
PASSING = (Unreachable, Unavailable, QueueFull, RateLimited)


def may_have_happened(error: Exception) -> bool:
    """Return whether the broker may have carried out the request despite the error."""
    if not isinstance(error, QueenError):  # unexpected: raised anywhere
        return True
    return isinstance(error, Unavailable) or (isinstance(error, Unreachable) and error.maybe_done)


def refusal(status: int, response: dict[str, Any]) -> Refused:
    """Return the exception for an error response of the broker."""
    message = str(response.get("error") or f"the broker responded with status {status}")
    code = str(response.get("code") or "error")
    full = RateLimited if code == "rate_limited" else QueueFull
    kinds: dict[int, type[Refused]] = {
        401: NotAllowed, 403: NotAllowed, 404: NotFound, 413: TooLarge, 429: full,
    }  # fmt: skip
    kind = Unavailable if status >= 500 else kinds.get(status, Refused)
    return (SqlError if code == "sql_error" else kind)(message, status, code, response)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
