"""Concurrency primitives of the asynchronous client: tasks of the event loop.

`sync/tasks.py` is the same with threads.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

sleep = asyncio.sleep


class Flag:
    """A one-shot flag that any thread may set; tasks wait for it."""

    def __init__(self) -> None:
        self._up = False
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def set(self) -> None:
        """Set the flag."""
        self._up = True
        with suppress(RuntimeError):  # the loop has closed: there are no waiters
            self._loop.call_soon_threadsafe(self._event.set)

    def is_set(self) -> bool:
        """Whether the flag is set."""
        return self._up

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the flag, up to a timeout; return whether it is set."""
        if not self._up:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), seconds)
        return self._up


class Condition:
    """A lock with notification."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()

    async def __aenter__(self) -> None:
        await self._condition.acquire()

    async def __aexit__(self, *error: object) -> None:
        self._condition.release()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for a notification, up to a timeout; return whether one came."""
        try:
            await asyncio.wait_for(self._condition.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def notify(self) -> None:
        """Wake all waiters."""
        self._condition.notify_all()


class Task:
    """A background task."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def join(self) -> BaseException | None:
        """Wait until it ends; return its exception, if any."""
        await asyncio.wait([self._task])
        return asyncio.CancelledError() if self._task.cancelled() else self._task.exception()

    def cancel(self) -> None:
        """Cancel the task. A no-op in the synchronous client: a thread cannot be cancelled."""
        self._task.cancel()

    async def cancelled(self) -> None:
        """Wait until a cancelled task ends. A no-op in the synchronous client."""
        await self.join()


async def call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call a handler of the user: a coroutine is awaited, a plain function runs in a thread and may block."""
    task = asyncio.current_task()
    try:
        if inspect.iscoroutinefunction(handler):
            return await handler(*arguments)
        result = await _in_a_thread(handler, *arguments)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("an operation that the handler awaited was cancelled") from None


async def _in_a_thread(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call it in a dedicated thread.

    The loop's pool has few threads, which also serve DNS lookups, and joins them at interpreter exit.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(handler, *arguments)
        except BaseException as raised:  # noqa: BLE001 - raised again in the awaiting task
            error = raised
        with suppress(RuntimeError):  # the loop has closed: there are no waiters
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True, name="queenspark-handler").start()
    result, error = await done
    if error is not None:
        raise error
    return result


def checked(handler: Callable[..., Any]) -> None:
    """Accept any function: coroutine or plain."""


def at_exit(work: Callable[[], object]) -> None:
    """Do nothing: at interpreter exit there is no event loop."""


def not_at_exit(work: Callable[[], object]) -> None:
    """Do nothing, as above."""


#: Consumers to stop on a signal, and the previous signal handlers.
_stops: list[Callable[[], object]] = []
_before: dict[signal.Signals, Any] = {}


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Stop all registered consumers on SIGINT and SIGTERM, in the main thread.

    A second signal has its usual effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    if not _stops:
        for number in filter(_is_free, (signal.SIGINT, signal.SIGTERM)):
            _before[number] = signal.getsignal(number)
            loop.add_signal_handler(number, _stop_all)
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)
        if not _stops:
            _restore()


def _stop_all() -> None:
    _restore()
    for stop in list(_stops):
        stop()


def _restore() -> None:
    loop = asyncio.get_running_loop()
    while _before:
        number, handler = _before.popitem()
        loop.remove_signal_handler(number)
        signal.signal(number, handler)


def _is_free(number: signal.Signals) -> bool:
    """Whether no handler is installed except asyncio.run's: the program's own handler wins."""
    handler = signal.getsignal(number)
    return handler in (signal.SIG_DFL, signal.default_int_handler) or "Runner" in getattr(
        getattr(handler, "func", handler), "__qualname__", ""
    )
