"""Every SQL example is run unchanged, and gives the rows that its last comments show."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartBroker
from tests.jobs.script import Outcome, Script, objects

FOLDER = Path(__file__).parents[2] / "examples"
FILES = {path.stem: path.read_text() for path in sorted((FOLDER / "sql").glob("*.sql"))}
ROWS = re.compile(r"^-- rows of (\w+)\n((?:^-- \{.*\n)*)", re.MULTILINE)

pytestmark = pytest.mark.timeout(300)


def shown(text: str) -> dict[str, str]:
    """The rows at the end of a file, by job."""
    return {job: rows.replace("-- {", "{") for job, rows in ROWS.findall(text)}


@pytest.fixture(scope="module")
def script(module_broker: StartBroker) -> Iterator[Script]:
    """A system in which all files were run."""
    broker = module_broker()
    found = Script(broker.url, broker.database_url)
    for text in FILES.values():
        found.sql(text)
    found.wait(
        [(Outcome(job=job), objects(rows)) for text in FILES.values() for job, rows in shown(text).items()]
    )
    yield found
    found.close()


@pytest.mark.parametrize("name", FILES)
def test_an_example_gives_its_rows(script: Script, name: str) -> None:
    expected = shown(FILES[name])
    assert expected, f"{name} shows no rows"
    for job, rows in expected.items():
        assert objects(rows), f"{name} shows no rows of {job}"
        script.check(Outcome(job=job), objects(rows))


def test_an_example_begins_with_a_summary() -> None:
    assert [name for name, text in FILES.items() if not text.startswith("-- ")] == []


def test_the_list_of_examples_has_all_of_them() -> None:
    listed = re.findall(
        r"^\| \[`(\w+)\.sql`\]\(sql/\1\.sql\)", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
    assert listed == list(FILES)
