# Made from aio/lines.py by `make format`: change that file, not this one.
"""A streamed response of JSON lines."""

from __future__ import annotations

import httpx2

from ..errors import QueenError, Unreachable
from ..wire import PIPELINE_HEADER


class Lines:
    """JSON lines as they arrive, without the empty keepalive lines.

    Closing the response makes the broker stop sending.
    """

    def __init__(self, response: httpx2.Response, url: str) -> None:
        #: Whether a pipeline was leading when the response began; None if the broker does not know.
        self.is_led = {"leading": True, "none": False}.get(response.headers.get(PIPELINE_HEADER, ""))
        self._response = response
        self._url = url
        self._chunks = response.iter_bytes()
        self._rest = b""

    def more(self) -> list[bytes]:
        """Return the next chunk of lines; empty at the end. Lost lines are not requested again."""
        if self._response.is_closed:
            raise QueenError("these rows were already read or closed: run the SELECT again")
        try:
            while chunk := next(self._chunks, b""):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                if lines := [line for line in lines if line]:
                    return lines
        except httpx2.TimeoutException:
            text = f"the broker at {self._url} stopped sending: check its health and run the query again"
            raise Unreachable(text, maybe_done=True) from None
        except httpx2.RequestError as error:
            reason = str(error) or type(error).__name__
            text = f"the broker at {self._url} closed the connection ({reason}): run the query again"
            raise Unreachable(text, maybe_done=True) from None
        return []

    def close(self) -> None:
        """Close the response; unread lines are lost."""
        self._response.close()
