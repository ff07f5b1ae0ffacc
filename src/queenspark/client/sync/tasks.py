"""What differs between the two clients: here threads; tasks of an event loop in `aio/tasks.py`."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

sleep = time.sleep


class Event:
    """A flag to wait for."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Raise the flag."""
        self._event.set()

    def clear(self) -> None:
        """Lower the flag."""
        self._event.clear()

    def is_set(self) -> bool:
        """Whether the flag is up."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the flag, at most so long; whether it is up."""
        return self._event.wait(seconds)


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
        return self._condition.wait(seconds)

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

    def join(self) -> None:
        """Wait for its end, and raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """A thread cannot be ended: it ends when its work does."""

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever joins
            self._error = error


def call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call what a user gave."""
    return handler(*arguments)


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
        stop()
        restore()

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    for number in list(before):
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()
