"""Retries of operations that fail with a transient error."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def repeat(
    operation: Callable[[], Awaitable[T]], errors: tuple[type[Exception], ...], pauses: Iterable[float]
) -> T:
    """Return the result of an operation, retried after each pause while it raises these errors."""
    for pause in pauses:
        try:
            return await operation()
        except errors:
            await sleep(pause)
    return await operation()
