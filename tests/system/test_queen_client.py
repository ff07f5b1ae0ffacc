"""The published clients of Queen against the whole system: queen-mq 0.14.0 with its streams, and 2.6.0."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.system.system import GLOBAL, System
from tests.wire.clients.run import RESULT

ROOT = Path(__file__).parents[2]
CLIENT = Path(sys.prefix) / "queen-0.14"
COUNT = 40

pytestmark = pytest.mark.together


def client(system: System, step: str, stream: str, *arguments: str) -> Any:
    """Run one step with the client; return its last output."""
    command = [sys.executable, "-m", "tests.system.client", step, system.api.url, stream, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(CLIENT), str(ROOT)))}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=120, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["partitioned", "global"])
def test_a_stream_is_defined_pushed_to_and_consumed(system: System, kind: str) -> None:
    tag = uuid4().hex[:8]
    name, queues = f"activity-{tag}", [f"clicks-{tag}", f"views-{tag}"]
    assert client(system, "define", name, kind, *queues)["success"]
    assert client(system, "push", name, str(COUNT), *queues) == {"pushed": COUNT}
    for group in ("analytics", "archive"):
        taken = client(system, "consume", name, group, "1", str(COUNT))
        assert sorted(number for each in taken for number in each["numbers"]) == list(range(COUNT))
        assert len({each["id"] for each in taken}) == len(taken)
        keys = {GLOBAL} if kind == "global" else {"user-0", "user-1", "user-2"}
        assert {each["key"] for each in taken} == keys
        if kind == "partitioned":
            assert all(f"user-{number % 3}" == each["key"] for each in taken for number in each["numbers"])


def test_consumers_of_a_group_share_the_windows(system: System) -> None:
    tag = uuid4().hex[:8]
    name, queue = f"shared-{tag}", f"events-{tag}"
    client(system, "define", name, "partitioned", queue)
    client(system, "push", name, str(COUNT), queue)
    taken = client(system, "consume", name, "workers", "3", str(COUNT))
    assert set(Counter(number for each in taken for number in each["numbers"]).values()) == {1}
    assert sorted(number for each in taken for number in each["numbers"]) == list(range(COUNT))
    assert len({each["worker"] for each in taken}) > 1
    # The windows of a key came in order.
    for key in {each["key"] for each in taken}:
        numbers = [number for each in taken if each["key"] == key for number in each["numbers"]]
        assert numbers == sorted(numbers)


RELEASES = {"0.14.0": [str(CLIENT), str(ROOT)], "2.6.0": [str(ROOT)]}
SCENARIOS = [
    "a_group_starts_with_everything_in_the_words_of_queens_tests",
    "a_loop_that_fails_without_delay_ends_in_the_dead_letters",
    "retries_end_in_the_dead_letters",
    "a_dead_letter_is_put_back",
    "workers_share_the_partitions_and_keep_their_order",
]


@pytest.mark.parametrize("release", RELEASES)
def test_queues_are_used_while_the_pipeline_runs(system: System, release: str) -> None:
    """From the beginning, with a retry delay of 0, and with dead letters."""
    lines = [json.dumps([scenario, f"q-{uuid4().hex[:8]}"]) for scenario in SCENARIOS]
    done = subprocess.run(
        [sys.executable, "-m", "tests.wire.clients.run", system.api.url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(RELEASES[release])},
        input="\n".join(lines),
        timeout=120,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    results = [json.loads(line.removeprefix(RESULT)) for line in printed]
    assert results == [release, *[None] * len(SCENARIOS)]
