"""Everything that the client raises, in one tree.

```
QueenError
├── InvalidValue          an argument makes no sense (also a ValueError); nothing was sent
├── Unreachable           no broker gave a whole answer
├── Refused               the broker answered no
│   ├── NotFound          there is no such queue, stream, group or message
│   ├── SqlError          a statement is wrong, or its query failed: line, column
│   ├── TooLarge          the request or a payload is too large
│   ├── NotAllowed        the broker does not know who is calling, or they lack the right
│   ├── RateLimited       the API key has reached its limit; later it may do more
│   ├── QueueFull         the queue has reached its max_size; later there may be room
│   └── Unavailable       the broker cannot answer now, for instance because PostgreSQL is away
├── LeaseLost             the lease is over: the message or window goes, or went, to another consumer
├── TransactionRefused    nothing of the transaction happened
├── InDoubt               whether it happened is not known: its answer got lost, and then its lease
├── BufferFull            the push buffer had no room for too long
└── NotSent               items of the push buffer could not be sent
```
"""

from __future__ import annotations

from typing import Any


class QueenError(Exception):
    """The root of all errors of the client."""


class InvalidValue(QueenError, ValueError):
    """An argument makes no sense; the message names it and says what to give."""


class Unreachable(QueenError):
    """No broker gave a whole answer. `maybe_done` says whether the request may have been carried out."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class Refused(QueenError):
    """The broker answered no; the message is the broker's, and `answer` all that it said."""

    def __init__(self, message: str, status: int, code: str, answer: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.answer = answer


class NotFound(Refused):
    """There is no such queue, stream, group or message."""


class SqlError(Refused):
    """A statement is wrong, at this `line` and `column` counted from 1; both are None when a query failed."""

    @property
    def line(self) -> int | None:
        """The line of the statements."""
        return _whole(self.answer.get("line"))

    @property
    def column(self) -> int | None:
        """The column of that line."""
        return _whole(self.answer.get("column"))


class TooLarge(Refused):
    """The request or a payload is too large."""


class NotAllowed(Refused):
    """The broker does not know who is calling (status 401), or they lack the right (403)."""


class RateLimited(Refused):
    """The API key has reached its limit of requests or messages per second."""


class QueueFull(Refused):
    """The queue has reached its `max_size`; later there may be room."""


class Unavailable(Refused):
    """The broker cannot answer now."""


class LeaseLost(QueenError):
    """The lease is over: the message or window goes, or went, to another consumer."""


class TransactionRefused(QueenError):
    """Nothing of the transaction happened; `code` says why, as in the HTTP API."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class InDoubt(QueenError):
    """Whether it happened is not known: its answer got lost, and then its lease."""


class BufferFull(QueenError):
    """The push buffer had no room for too long; nothing of this push was taken."""


class NotSent(QueenError):
    """Items of the push buffer could not be sent; `payloads` are those that are no longer in the buffer."""

    def __init__(self, message: str, payloads: list[object]) -> None:
        super().__init__(message)
        self.payloads = payloads


#: Errors after which the same request may succeed.
PASSING = (Unreachable, Unavailable, QueueFull, RateLimited)


def may_have_happened(error: QueenError) -> bool:
    """Whether the broker may have carried out the request all the same."""
    return isinstance(error, Unavailable) or (isinstance(error, Unreachable) and error.maybe_done)


def refusal(status: int, answer: dict[str, Any]) -> Refused:
    """The error that stands for an answer of the broker."""
    message = str(answer.get("error") or f"the broker responded with status {status}")
    code = str(answer.get("code") or "error")
    full = RateLimited if code == "rate_limited" else QueueFull
    kinds: dict[int, type[Refused]] = {
        401: NotAllowed, 403: NotAllowed, 404: NotFound, 413: TooLarge, 429: full,
    }  # fmt: skip
    kind = Unavailable if status >= 500 else kinds.get(status, Refused)
    return (SqlError if code == "sql_error" else kind)(message, status, code, answer)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
