"""Every example of the SQL pages gives the documented result."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from queenspark.sql.planning.aggregates import AGGREGATES
from tests.conftest import StartBroker
from tests.jobs.script import Block, Outcome, Script, blocks, matches, named_job, objects
from tools.sql_functions import EXAMPLES, SAMPLES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sql.md").read_text()
#: The reference comes first: lists in it have nothing of the other pages.
PAGES = ["sql.md", *sorted(path.name for path in DOCS.glob("from-*.md"))]
BLOCKS = [(page, block) for page in PAGES for block in blocks((DOCS / page).read_text())]
#: Example and result of each row of the tables of operators and functions.
TABLE = re.compile(r"\| `([^`\n]+)` \| `([^`\n]+)` \|$", re.MULTILINE)

pytestmark = pytest.mark.timeout(300)


Place = tuple[str, int]


class Played(NamedTuple):
    """The pages, run from the first block to the last: the result of each block, by page and line."""

    script: Script
    outcomes: dict[Place, Outcome]


def play(script: Script) -> Played:
    """Run the pages and wait for all rows that they show."""
    found: dict[Place, Outcome] = {}
    for number, (page, block) in enumerate(BLOCKS):
        outcome = script.play(block.sql)
        later = any(named_job(other.sql) == outcome.job for _, other in BLOCKS[number + 1 :])
        if block.kind == "json" and outcome.job is not None and later:
            # Rows as they are before a later block changes the job.
            outcome = Outcome(rows=script.data(outcome.job))
        found[page, block.line] = outcome
    shown = [(found[page, block.line], block) for page, block in BLOCKS if block.kind == "json"]
    script.wait([(outcome, objects(block.expected)) for outcome, block in shown])
    return Played(script, found)


@pytest.fixture(scope="module")
def script(module_broker: StartBroker) -> Iterator[Script]:
    broker = module_broker()
    found = Script(broker.url, broker.database_url)
    yield found
    found.close()


@pytest.fixture(scope="module")
def played(script: Script) -> Played:
    return play(script)


@pytest.mark.parametrize(
    ("page", "block"), [pytest.param(page, block, id=f"{page}:{block.line}") for page, block in BLOCKS]
)
def test_a_block_prints_the_documented_output(played: Played, page: str, block: Block) -> None:
    outcome = played.outcomes[page, block.line]
    if block.kind == "json":
        played.script.check(outcome, objects(block.expected))
    elif block.kind == "text":
        assert outcome.lines is not None
        assert matches(outcome.lines, block.expected.splitlines()), "\n".join(outcome.lines)
    else:
        assert outcome.lines is None, outcome.lines


def test_a_record_that_fails_has_the_reason_that_the_page_says(played: Played) -> None:
    (dead,) = played.script.dead("per_box")
    assert f"the reason `{dead['reason']}`" in PAGE


def test_each_statement_clause_and_window_has_an_example() -> None:
    text = " ".join(block.sql for _, block in BLOCKS)
    for words in (
        "CREATE STREAM", "CREATE OR REPLACE STREAM", "INSERT INTO", "DROP STREAM", "IF EXISTS", "CASCADE",
        "PAUSE JOB", "RESUME JOB", "RESTART JOB", "SHOW STREAMS", "SHOW JOBS", "SHOW QUEUES",
        "SHOW FUNCTIONS", "DESCRIBE", "DESCRIBE EXTENDED", "EXPLAIN CREATE", "EXPLAIN SELECT", "WHERE",
        "GROUP BY", "HAVING", "EMIT CHANGES", "EMIT FINAL", "LIMIT", "EXPLODE(", "TUMBLING(", "SLIDING(",
        "SESSION(", "COUNT(2", "ROWS(2", "OVER (ROWS WINDOW BUFFER", "PARTITION BY", "FILTER (WHERE",
        "grace =", "idle_timeout =", "late =", "keep =", "max_ahead =", "emit_empty =", "ttl =", "on_error =",
        "start =", "retention =", "partition_by =", "queues =",
    ):  # fmt: skip
        assert words in text, f"there is no example with {words}"


def test_the_results_in_the_tables_are_those_of_a_job(script: Script) -> None:
    found = TABLE.findall(PAGE[PAGE.index("<!-- functions -->") :])
    examples = {_plain(example): msgspec.json.decode(_plain(result)) for example, result in found}
    of_aggregates = {example for each in EXAMPLES.values() for example in each}
    over = [example for example in of_aggregates if "OVER" in example]
    scalars = [example for example in examples if example not in of_aggregates]
    assert of_aggregates <= set(examples)
    assert len(scalars) > 80
    rows = ", ".join(f"('{name}', {'NULL' if n is None else n})" for name, n in SAMPLES)
    script.sql(
        "CREATE STREAM samples (name STRING, n BIGINT) WITH (queue = 'samples');"
        f"INSERT INTO samples VALUES {rows};"
        f"CREATE STREAM of_scalars AS SELECT {_columns(scalars)} FROM samples WHERE name = 'a';"
        f"CREATE STREAM of_over AS SELECT {_columns(over)} FROM samples;"
        f"CREATE STREAM of_windows AS SELECT {_columns(sorted(of_aggregates - set(over)))} FROM samples"
        f" WINDOW COUNT({len(SAMPLES)})"
    )
    script.drain()
    results: dict[str, Any] = {}
    for job in ("of_scalars", "of_over", "of_windows"):
        results |= script.data(job)[-1]
    assert results == examples


def test_each_aggregate_has_an_example() -> None:
    assert set(EXAMPLES) == set(AGGREGATES)


def _plain(cell: str) -> str:
    return cell.replace("\\|", "|")


def _columns(examples: list[str]) -> str:
    return ", ".join(f"{example} AS `{example}`" for example in examples)
