"""A lean HTTP client for the latency measurement: one keep-alive connection, no frills.

A full client would use enough of the machine to distort the measurement.
"""

import asyncio
import json
from typing import Any


class Connection:
    """One connection; one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; return the status and the body of the response as JSON."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self._writer.write(head.encode() + b"\r\n" + content)
        response = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(response[9:12])
        length = 0
        for line in response.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        data = await self._reader.readexactly(length) if length else b""
        return status, json.loads(data) if data else None

    def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
