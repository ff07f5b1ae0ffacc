"""The reason for a failure of a Spark query, in one line."""

from __future__ import annotations

import re

_LONGEST = 500
_QUERY = "=== Streaming Query ==="  # followed by the query's offsets, state and plan
_ERROR = re.compile(r"[A-Za-z_][\w.$]*: \S")  # the last line of a Python stack trace, unindented


def reason_of(failure: str) -> str:
    """Extract the error line: the end of the stack trace."""
    lines = [line for line in failure.partition(_QUERY)[0].splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    telling = errors[-1] if errors else lines[0] if lines else "no reason given"
    return telling.strip()[:_LONGEST]
