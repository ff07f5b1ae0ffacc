"""The published client of that time, queen-mq 0.14.0: its streams and consumers against a real broker."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.streams.stream_api import StreamApi

ROOT = Path(__file__).parents[2]
CLIENT = Path(sys.prefix) / "queen-0.14"


def client(step: str, stream: StreamApi, *arguments: str) -> Any:
    """Run one step with the client; return its last output."""
    command = [sys.executable, "-m", "tests.streams.client", step, stream.api.url, stream.name, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(CLIENT), str(ROOT)))}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=90, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def defined(stream: StreamApi) -> StreamApi:
    """The stream, defined by the client."""
    stream.api.configure(stream.queue)
    response = client("define", stream, stream.namespace, stream.queue)
    stream.id = int(response["stream_id"])
    ((stream.queue_id,),) = stream.run("SELECT queue_id FROM queenspark.streams WHERE id = %s", stream.id)
    return stream


def test_windows_reach_a_consumer_and_a_failed_one_is_redelivered(stream: StreamApi) -> None:
    defined(stream)
    shown = stream.resource()
    assert (shown["windowDurationMs"], shown["windowGracePeriodMs"]) == (60_000, 1000)
    assert (shown["windowLeaseTimeoutMs"], shown["partitioned"]) == (2000, True)
    for key in ("a", "b", "c"):
        records = stream.push({"n": 1}, {"n": 2}, {"n": 0.5}, partition=key)
        stream.seal(stream.over(records))
    result = client("consume", stream, "readers", "3", "b")
    assert result["seen"] == [["a", 3, 3.5], ["b", 3, 3.5], ["c", 3, 3.5]]
    assert len(result["failed"]) == 1
    assert stream.empty("readers")
    # Moved back, the group gets them again.
    assert client("seek", stream, "readers", "2020-01-01T00:00:00Z")["success"]
    assert len(stream.drain("readers")) == 3


def test_a_lease_that_is_renewed_stays(stream: StreamApi) -> None:
    defined(stream)
    stream.seal(stream.over(stream.push({"n": 1})))
    assert client("slowly", stream, "readers") == {"stolen": []}
    assert stream.empty("readers")
