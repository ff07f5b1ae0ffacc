"""What differs between the two clients: here tasks of an event loop; threads in `sync/tasks.py`."""

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
    """Raised once, by any thread; tasks wait for it."""

    def __init__(self) -> None:
        self._up = False
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def set(self) -> None:
        """Raise the flag."""
        self._up = True
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            self._loop.call_soon_threadsafe(self._event.set)

    def is_set(self) -> bool:
        """Whether the flag is up."""
        return self._up

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the flag, at most so long; whether it is up."""
        if not self._up:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), seconds)
        return self._up


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

    async def join(self) -> BaseException | None:
        """Wait for its end; what it raised."""
        await asyncio.wait([self._task])
        return asyncio.CancelledError() if self._task.cancelled() else self._task.exception()

    def cancel(self) -> None:
        """End it now. In the other client this does nothing: a thread cannot be ended."""
        self._task.cancel()

    async def cancelled(self) -> None:
        """Wait for the end of one that was cancelled. In the other client this does nothing either."""
        await self.join()


async def call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call what a user gave: a coroutine is awaited, a plain function runs in a thread and may block."""
    task = asyncio.current_task()
    try:
        if inspect.iscoroutinefunction(handler):
            return await handler(*arguments)
        answer = await _in_a_thread(handler, *arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError:
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("an operation that the handler awaited was cancelled") from None


async def _in_a_thread(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call it in a thread of its own.

    The pool of the loop has few threads, needs them to look up the names of hosts, too, and waits for them
    when the program ends.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def settle(answer: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((answer, error))

    def work() -> None:
        answer, error = None, None
        try:
            answer = context.run(handler, *arguments)
        except BaseException as raised:  # noqa: BLE001 - raised again where it is waited for
            error = raised
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(settle, answer, error)

    threading.Thread(target=work, daemon=True, name="queenspark-handler").start()
    answer, error = await done
    if error is not None:
        raise error
    return answer


def checked(handler: Callable[..., Any]) -> None:
    """Any function will do here: a coroutine or a plain one."""


def at_exit(work: Callable[[], object]) -> None:
    """Nothing: at the end of the program there is no loop any more."""


def not_at_exit(work: Callable[[], object]) -> None:
    """Nothing, as above."""


#: The consumers that a signal stops, and who had the signals before them.
_stops: list[Callable[[], object]] = []
_before: dict[signal.Signals, Any] = {}


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """SIGINT and SIGTERM stop all who are here, a second one has its usual effect. In the main thread."""
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
    """Whether nobody but asyncio.run has a handler: that of the program wins."""
    handler = signal.getsignal(number)
    return handler in (signal.SIG_DFL, signal.default_int_handler) or "Runner" in getattr(
        getattr(handler, "func", handler), "__qualname__", ""
    )
