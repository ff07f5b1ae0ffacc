"""Concurrency primitives of the synchronous client: threads.

`aio/tasks.py` is the same with tasks of an event loop.
"""

from __future__ import annotations

import atexit
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..errors import InvalidValue

sleep = time.sleep

#: Bounds every wait of the main thread, since a signal that arrives just before a wait would go unnoticed.
_LONGEST = 0.2


class Flag:
    """A one-shot flag. Its lock is reentrant: a signal handler may set it in the thread that waits."""

    def __init__(self) -> None:
        self._up = False
        self._raised = threading.Condition(threading.RLock())

    def set(self) -> None:
        """Set the flag."""
        self._up = True
        with self._raised:
            self._raised.notify_all()

    def is_set(self) -> bool:
        """Whether the flag is set."""
        return self._up

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the flag, up to a timeout; return whether it is set."""
        until = None if seconds is None else time.monotonic() + seconds
        with self._raised:
            while not self._up:
                left = _LONGEST if until is None else min(_LONGEST, until - time.monotonic())
                if left <= 0:
                    break
                self._raised.wait(left)
        return self._up


class Condition:
    """A lock with notification."""

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def __enter__(self) -> None:
        self._condition.acquire()

    def __exit__(self, *error: object) -> None:
        self._condition.release()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a notification, up to a timeout; return whether one came."""
        return self._condition.wait(_LONGEST if seconds is None else seconds)

    def notify(self) -> None:
        """Wake all waiters."""
        self._condition.notify_all()


class Task:
    """A background thread that does not keep the program alive."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True, name="queenspark-client")
        self._thread.start()

    def join(self) -> BaseException | None:
        """Wait until it ends; return its exception, if any."""
        while self._thread.is_alive():
            self._thread.join(_LONGEST)
        return self._error

    def cancel(self) -> None:
        """Do nothing: a thread cannot be cancelled and ends with its work."""

    def cancelled(self) -> None:
        """Do nothing: there is no cancellation to wait for."""

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised by join
            self._error = error


def call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call a handler of the user."""
    result = handler(*arguments)
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("the handler returned a coroutine: use a plain function, or AsyncQueen")
    return result


def checked(handler: Callable[..., Any]) -> None:
    """Reject coroutine functions: they would count as done without having run."""
    if inspect.iscoroutinefunction(handler):
        raise InvalidValue(f"handler is {handler!r}: pass a plain function, or use AsyncQueen")


_hooks: dict[Callable[[], object], Callable[[], object]] = {}


def at_exit(work: Callable[[], object]) -> None:
    """Run this at interpreter exit; not in a forked child, which has no threads."""
    here = os.getpid()

    def hook() -> None:
        if os.getpid() == here:
            work()

    _hooks[work] = atexit.register(hook)


def not_at_exit(work: Callable[[], object]) -> None:
    """Cancel an exit hook."""
    if hook := _hooks.pop(work, None):
        atexit.unregister(hook)


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on SIGINT and SIGTERM; a second signal has its usual effect. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if (handler := signal.getsignal(number)) in (signal.SIG_DFL, signal.default_int_handler)
    }

    def first(number: int, frame: FrameType | None) -> None:
        restore()
        stop()

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    for number in list(before):
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()
