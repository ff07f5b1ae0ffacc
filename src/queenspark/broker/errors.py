"""Errors that become an HTTP response with a clear message."""

from __future__ import annotations


class ApiError(Exception):
    """An error response: status, a message for people, a code for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        *,
        retry_after: int | None = None,
        allow: tuple[str, ...] = (),
        at: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or _CODES.get(status, "error")
        self.retry_after = retry_after
        #: The methods that the path supports, for 405.
        self.allow = allow
        #: The line and column in a statement, counted from 1.
        self.at = at

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (429, 503)


_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "in_use",
    413: "too_large",
    415: "unsupported",
    429: "queue_full",
    500: "internal",
    503: "unavailable",
}


def bad_request(message: str) -> ApiError:
    """400: the request is invalid; the message names the field and the fix."""
    return ApiError(400, message)


def not_found(message: str) -> ApiError:
    """404: the requested object does not exist."""
    return ApiError(404, message)
