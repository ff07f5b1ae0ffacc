"""The page about Spark: its examples form one program, which prints the documented output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from queenspark.pipeline.connector.messages import SCHEMA
from queenspark.pipeline.connector.options import READ_OPTIONS, WRITE_OPTIONS
from tests.pipeline.queues import Queues
from tests.test_documentation import first_cells, page, section

PAGE = page("spark.md")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.long
def test_the_examples_print_the_documented_output(queues: Queues, tmp_path: Path) -> None:
    settings = {"QUEENSPARK_DATABASE_URL": queues.url, "QUEENSPARK_SPARK_MASTER": "local[2]"}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))],
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace("\n\n", "\n") == "".join(blocks("text"))
    assert done.stderr == ""


def test_every_option_and_column_is_on_the_page() -> None:
    read = section(PAGE, "Reading a queue")
    columns = {field.split()[0] for field in re.split(r",\s*(?![^<]*>)", SCHEMA)}
    assert first_cells(read) == columns | set(READ_OPTIONS)
    assert first_cells(section(PAGE, "Writing to a queue")) == set(WRITE_OPTIONS)
