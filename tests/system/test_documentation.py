"""The commands of the page about streams, run one after the other as a reader does."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.system import System

PAGE = Path(__file__).parents[2] / "docs" / "streams.md"


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="the page uses curl and jq")
def test_the_commands_of_the_page_about_streams_work(system: System) -> None:
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
