"""The signals that stop a command: who hears them, and when they have to wait."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def on_stop(handler: Callable[[int, FrameType | None], Any]) -> None:
    """Call `handler` when Ctrl-C, SIGTERM or SIGHUP comes; under `nohup`, SIGHUP is still ignored."""
    for number in STOPPING:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Whatever the block makes of the signals, afterwards they mean what they did before."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        _restore(before)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Signals that stop us come after the block, so that what it starts is known to us by then."""
    came: list[int] = []
    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():  # Python hands signals to no other one
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
