"""The commands of the page about streams and the program of the README, run as a reader does."""

import re
import shutil
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from tests.broker_process import clean_environment
from tests.system.system import System

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "streams.md"

pytestmark = pytest.mark.together


def test_the_commands_of_the_page_about_streams_work(system: System) -> None:
    if not (shutil.which("curl") and shutil.which("jq")):
        pytest.skip("the page uses curl and jq")
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = "\necho\n".join(blocks).replace("http://127.0.0.1:6632", system.api.url)
    # A busy machine needs longer for the first window than a reader's.
    script = script.replace('"timeout": 20000', '"timeout": 60000')
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"error"' not in done.stdout
    assert '{"page":"/buy","ms":30}' in done.stdout
    assert '{"success":true,"acked":true,"dlq":false}' in done.stdout
    assert done.stdout.rstrip().endswith('{"success":true,"results":["ack","push"]}')
    assert [message["data"] for message in system.api.drain("sums", 1)] == [42]


def test_the_first_stream_of_the_readme_prints_its_window(system: System) -> None:
    (program,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=clean_environment(url=system.api.url),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(line.startswith("anna 20") for line in lines)
    found = [literal_eval(line[line.index("{") :]) for line in lines]
    assert len(found) in (1, 2)  # the end of a window may lie between two pushes
    assert sum(each["count"] for each in found) == 3
    assert sum(each["sum"] for each in found) == 12.5
