"""What differs between the two clients: here tasks of an event loop; threads in `sync/tasks.py`."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

sleep = asyncio.sleep


class Event:
    """A flag to wait for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Raise the flag."""
        self._event.set()

    def clear(self) -> None:
        """Lower the flag."""
        self._event.clear()

    def is_set(self) -> bool:
        """Whether the flag is up."""
        return self._event.is_set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the flag, at most so long; whether it is up."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        return self._event.is_set()


class Condition:
    """A lock, and a way to wait for news under it."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()

    async def __aenter__(self) -> None:
        await self._condition.acquire()

    async def __aexit__(self, *error: object) -> None:
        self._condition.release()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for news, at most so long; whether there was any."""
        try:
            await asyncio.wait_for(self._condition.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def notify(self) -> None:
        """Wake all who wait."""
        self._condition.notify_all()


class Task:
    """Work beside the caller's."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def join(self) -> None:
        """Wait for its end, and raise what it raised."""
        await self._task

    def cancel(self) -> None:
        """End it now. In the other client this does nothing: a thread cannot be ended."""
        self._task.cancel()


async def call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call what a user gave: a coroutine is awaited, a plain function runs in a thread and may block."""
    if inspect.iscoroutinefunction(handler):
        return await handler(*arguments)
    answer = await asyncio.to_thread(handler, *arguments)
    return await answer if inspect.isawaitable(answer) else answer


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """SIGINT and SIGTERM call `stop`; a second one has its usual effect. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if _is_free(number)
    }

    def first() -> None:
        stop()
        restore()

    def restore() -> None:
        while before:
            number, handler = before.popitem()
            loop.remove_signal_handler(number)
            signal.signal(number, handler)

    for number in list(before):
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        restore()


def _is_free(number: signal.Signals) -> bool:
    """Whether nobody but asyncio.run has a handler: that of the program wins."""
    handler = signal.getsignal(number)
    return handler in (signal.SIG_DFL, signal.default_int_handler) or "Runner" in getattr(
        getattr(handler, "func", handler), "__qualname__", ""
    )
