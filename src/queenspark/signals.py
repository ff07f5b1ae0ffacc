"""The signals that stop a command: handlers, and deferral."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def on_stop(handler: Callable[[int, FrameType | None], Any]) -> None:
    """Call `handler` on Ctrl-C, SIGTERM or SIGHUP; under `nohup`, SIGHUP is still ignored."""
    for number in STOPPING:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the signal handlers after the block."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        _restore(before)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Defer stop signals until after the block, so that child processes started in it are known by then."""
    came: list[int] = []
    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():  # the only thread that gets signals
            for number in STOPPING:
                before[number] = signal.signal(number, lambda caught, _: came.append(caught))
        yield
    finally:
        _restore(before)
        for caught in came:
            signal.raise_signal(caught)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)
