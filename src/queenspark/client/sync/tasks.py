"""What differs between the two clients: here threads; tasks of an event loop in `aio/tasks.py`."""

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

#: No wait of the main thread is without end: a signal that comes right before it would not be seen.
_LONGEST = 0.2


class Flag:
    """Raised once, by any thread. A signal may raise it in the thread that waits: its lock is reentrant."""

    def __init__(self) -> None:
        self._up = False
        self._raised = threading.Condition(threading.RLock())

    def set(self) -> None:
        """Raise the flag."""
        self._up = True
        with self._raised:
            self._raised.notify_all()

    def is_set(self) -> bool:
        """Whether the flag is up."""
        return self._up

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the flag, at most so long; whether it is up."""
        until = None if seconds is None else time.monotonic() + seconds
        with self._raised:
            while not self._up:
                left = _LONGEST if until is None else min(_LONGEST, until - time.monotonic())
                if left <= 0:
                    break
                self._raised.wait(left)
        return self._up


class Condition:
    """A lock, and a way to wait for news under it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def __enter__(self) -> None:
        self._condition.acquire()

    def __exit__(self, *error: object) -> None:
        self._condition.release()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for news, at most so long; whether there was any."""
        return self._condition.wait(_LONGEST if seconds is None else seconds)

    def notify(self) -> None:
        """Wake all who wait."""
        self._condition.notify_all()


class Task:
    """Work beside the caller's, in a thread that does not keep the program alive."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True, name="queenspark-client")
        self._thread.start()

    def join(self) -> BaseException | None:
        """Wait for its end; what it raised."""
        while self._thread.is_alive():
            self._thread.join(_LONGEST)
        return self._error

    def cancel(self) -> None:
        """A thread cannot be ended: it ends when its work does."""

    def cancelled(self) -> None:
        """So nobody waits for it."""

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - for whoever joins
            self._error = error


def call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call what a user gave."""
    answer = handler(*arguments)
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("the handler returned a coroutine, which only AsyncQueen awaits")
    return answer


def checked(handler: Callable[..., Any]) -> None:
    """Refuse what would not be run but count as done."""
    if inspect.iscoroutinefunction(handler):
        raise InvalidValue(f"handler is {handler!r}: give a plain function, or use AsyncQueen")


_hooks: dict[Callable[[], object], Callable[[], object]] = {}


def at_exit(work: Callable[[], object]) -> None:
    """Do this when the program ends; not in a process that was forked, as it has no threads."""
    here = os.getpid()

    def hook() -> None:
        if os.getpid() == here:
            work()

    _hooks[work] = atexit.register(hook)


def not_at_exit(work: Callable[[], object]) -> None:
    """It was done before."""
    if hook := _hooks.pop(work, None):
        atexit.unregister(hook)


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """SIGINT and SIGTERM call `stop`; a second one has its usual effect. Only in the main thread."""
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
