"""Why a query of Spark failed, in one line."""

from __future__ import annotations

import re

_LONGEST = 500
_QUERY = "=== Streaming Query ==="  # Spark appends the query's offsets, state and plan after this line
_ERROR = re.compile(r"[A-Za-z_][\w.$]*: \S")  # the last line of a stack trace in Python, at its margin


def reason_of(failure: str) -> str:
    """The line of a failure that says what happened: the error at the end of its stack trace."""
    lines = [line for line in failure.partition(_QUERY)[0].splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    telling = errors[-1] if errors else lines[0] if lines else "no reason given"
    return telling.strip()[:_LONGEST]
