"""Runs the checks of the JavaScript side with node's own test runner."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.broker_process import Broker

CHECKS = Path(__file__).with_name("test_fetch_client.mjs")


def test_responses_have_the_shape_that_the_javascript_client_reads(shared_broker: Broker) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        [node, "--test", str(CHECKS)],
        env={**os.environ, "QUEENSPARK_URL": shared_broker.url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
