"""A failure of Spark in one line."""

import pytest

from queenspark.pipeline.process.reason import reason_of

IN_A_TASK = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/src/queenspark/store/log.py", line 13, in read
    raise DatabaseUnavailable("the log could not be read")
queenspark.store.errors.DatabaseUnavailable: the log could not be read
 SQLSTATE: 38000
=== Streaming Query ===
Identifier: [id = 7d9cfcfb, runId = ec8a0c58]
Current State: ACTIVE
Thread State: RUNNABLE

Logical Plan:
WriteToMicroBatchDataSource noop-table
"""


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (IN_A_TASK, "queenspark.store.errors.DatabaseUnavailable: the log could not be read"),
        (
            "[STREAM_FAILED] The query stopped\n=== Streaming Query ===\nThread State: NEW",
            "[STREAM_FAILED] The query stopped",
        ),
        ("", "no reason given"),
    ],
)
def test_the_reason_is_the_error_line(failure: str, reason: str) -> None:
    assert reason_of(failure) == reason
