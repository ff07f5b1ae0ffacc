"""An answer of JSON lines, which the broker sends as they come."""

from __future__ import annotations

import httpx2

from ..errors import QueenError, Unreachable


class AsyncLines:
    """Lines of JSON as they come, without empty ones, by which the broker says that it is there.

    Closing it leaves: the broker sends no more.
    """

    def __init__(self, response: httpx2.Response, url: str) -> None:
        self._response = response
        self._url = url
        self._chunks = response.aiter_bytes()
        self._rest = b""

    async def more(self) -> list[bytes]:
        """The next lines, those that came together; none at the end. What is lost is not asked for again."""
        if self._response.is_closed:
            raise QueenError("these rows were already read or closed: run the SELECT again")
        try:
            while chunk := await anext(self._chunks, b""):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                if lines := [line for line in lines if line]:
                    return lines
        except httpx2.TimeoutException:
            text = f"the broker at {self._url} sends nothing any more: check its health, and run it again"
            raise Unreachable(text, maybe_done=True) from None
        except httpx2.RequestError as error:
            text = f"the broker at {self._url} broke off ({str(error) or type(error).__name__}): run it again"
            raise Unreachable(text, maybe_done=True) from None
        return []

    async def aclose(self) -> None:
        """Leave; whatever was not read is lost."""
        await self._response.aclose()
