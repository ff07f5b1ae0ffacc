"""Waiting for a condition, with a deadline instead of a sleep of guessed length."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

INTERVAL = 0.01
"""Seconds between two checks."""


def eventually(check: Callable[[], T], within: float = 10.0) -> T:
    """The first truthy result of `check`; fails if there is none in time."""
    end = time.monotonic() + within
    while True:
        seen = check()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"not so within {within} s; last seen: {seen!r}")
        time.sleep(INTERVAL)
