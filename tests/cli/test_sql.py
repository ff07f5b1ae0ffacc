"""`queenspark sql -c` and `-f`, against a real broker."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from queenspark.cli.sql.hint import no_rows_hint
from tests.broker_process import Broker, clean_environment, free_port
from tests.client.proxy import Fault, Proxy
from tests.command import Command
from tests.leader import LEAD, leading
from tests.wire.deadline import eventually
from tests.wire.sql import Sql


@pytest.fixture
def emitted(sql: Sql) -> Iterator[Callable[..., None]]:
    """Pushes rows as the next SELECT's job does, in the background: `emitted('{"page": "a"}')`."""
    threads: list[Thread] = []

    def emit(*payloads: str) -> None:
        def work() -> None:
            eventually(lambda: len(sql.temporary_queues()) == 1)
            sql.emit(sql.temporary_queues()[0], *payloads)

        threads.append(Thread(target=work))
        threads[-1].start()

    yield emit
    for thread in threads:
        thread.join()
    eventually(lambda: not sql.temporary_queues())


def test_statements_are_run_one_after_the_other(queenspark: Command, sql: Sql, clicks: str) -> None:
    result = queenspark(
        "sql",
        "-c", f"INSERT INTO {clicks} VALUES ('home', 12), ('cart', 30);",
        "-c", f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks}; PAUSE JOB busy_{clicks};",
        "-c", f"PAUSE JOB busy_{clicks}; DROP STREAM busy_{clicks}",
    )  # fmt: skip
    assert result.code == 0
    assert result.err.splitlines() == [
        f"2 rows inserted into {clicks}.",
        f"The job busy_{clicks} is defined, version 1.",
        f"The job busy_{clicks} is paused, version 1.",
        f"The job busy_{clicks} is already paused, version 1.",
        f"Dropped: busy_{clicks}.",
    ]
    assert result.out == ""


def test_a_job_that_is_replaced_says_how(queenspark: Command, sql: Sql, clicks: str) -> None:
    statement = f"CREATE OR REPLACE STREAM busy_{clicks} AS SELECT page FROM {clicks}"
    said = queenspark("sql", "-c", statement, "-c", statement, "-c", f"{statement} WHERE ms > 5").err
    assert said.splitlines() == [
        f"The job busy_{clicks} is defined, version 1.",
        f"The job busy_{clicks} is unchanged, version 1.",
        f"The job busy_{clicks} is replaced by position, version 2.",
    ]


def test_a_list_is_a_table(queenspark: Command, clicks: str) -> None:
    result = queenspark("sql", "-c", "SHOW STREAMS")
    assert result.out.splitlines()[0].split() == ["name", "kind", "rows", "reads", "statement"]
    (line,) = [line for line in result.out.splitlines() if line.startswith(clicks)]
    assert line.split()[1:4] == ["schema", "append", clicks]
    assert line.rstrip().endswith(
        f"CREATE STREAM {clicks} (page STRING, ms BIGINT) WITH (queue = '{clicks}')"
    )
    assert "\x1b" not in result.out


def test_a_stream_is_described_and_a_query_explained(queenspark: Command, clicks: str) -> None:
    described = queenspark("sql", "-c", f"DESCRIBE {clicks}").out.splitlines()
    assert [line.split() for line in described][-2:] == [["page", "string"], ["ms", "bigint"]]
    assert ["reads", clicks] in [line.split() for line in described]
    explained = queenspark("sql", "-c", f"EXPLAIN SELECT page FROM {clicks}").out
    assert f"source: {clicks}" in explained


def test_json_is_a_document_for_each_result(queenspark: Command, clicks: str) -> None:
    result = queenspark("sql", "--json", "-c", f"INSERT INTO {clicks} VALUES ('a', 1); DESCRIBE {clicks}")
    inserted, described = result.json_lines()
    assert inserted == {"kind": "insert", "name": clicks, "count": 1, "changed": True}
    assert described["rows"] == [["page", "string"], ["ms", "bigint"]]


def test_an_error_shows_its_line_with_a_caret(queenspark: Command, clicks: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.sql"
    file.write_text(f"DESCRIBE {clicks};\nSELECT page,\n\tpgae FROM {clicks};\n")
    result = queenspark("sql", "-f", str(file))
    assert result.code == 1
    assert result.err.splitlines()[-3:] == [
        f"3 |  pgae FROM {clicks};",
        "     ^",
        f"pgae is not a column of {clicks}; did you mean page?",
    ]
    alone = queenspark("sql", "-c", f"SELECT pgae FROM {clicks}")
    assert alone.err.splitlines()[:2] == [f"  SELECT pgae FROM {clicks}", " " * 9 + "^"]


def test_statements_of_one_text_are_applied_together_or_not_at_all(
    queenspark: Command, sql: Sql, clicks: str
) -> None:
    text = f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks}; DROP STREAM no_such_stream"
    assert queenspark("sql", "-c", text).code == 1
    assert "no job" in queenspark("sql", "-c", f"PAUSE JOB busy_{clicks}").err


def test_a_dry_run_changes_nothing(queenspark: Command, sql: Sql, clicks: str) -> None:
    text = f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks}; INSERT INTO {clicks} VALUES ('a', 1)"
    result = queenspark("sql", "--dry-run", "-c", text)
    assert result.err.splitlines() == [
        f"The job busy_{clicks} would be defined, version 1.", f"1 row would be inserted into {clicks}.",
    ]  # fmt: skip
    assert "not run" in queenspark("sql", "--dry-run", "-c", f"SELECT page FROM {clicks}").err
    assert sql.one(f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks}")["changed"]


def test_rows_of_a_select_are_aligned(queenspark: Command, clicks: str, emitted: Callable[..., None]) -> None:
    emitted('{"page": "home", "n": 1}', '{"page": null, "n": 1234567}', '{"page": "日本", "n": 30}')
    text = f"SELECT page, COUNT(*) AS n FROM {clicks} GROUP BY page EMIT CHANGES LIMIT 3"
    result = queenspark("sql", "-c", text)
    assert result.code == 0
    # The columns grow with the rows, which come together or one by one.
    lines = [line for line in result.out.splitlines() if not line.startswith("page")]
    assert [line.split() for line in lines] == [["home", "1"], ["NULL", "1234567"], ["日本", "30"]]
    assert "NULL        1234567" in lines
    assert "日本             30" in lines
    assert "Ctrl-C" in result.err
    assert result.err.endswith("3 rows.\n")


def test_a_select_with_json_is_a_line_for_each_row(
    queenspark: Command, clicks: str, emitted: Callable[..., None]
) -> None:
    emitted('{"page": "home", "n": 1}', '{"page": "cart", "n": 2}')
    text = f"SELECT page, COUNT(*) AS n FROM {clicks} GROUP BY page EMIT CHANGES LIMIT 2"
    columns, *rows = queenspark("sql", "--json", "-c", text).json_lines()
    assert [column["name"] for column in columns["columns"]] == ["page", "n"]
    assert rows == [["home", 1], ["cart", 2]]


def test_a_select_ends_after_its_timeout_and_the_next_statement_is_run(
    queenspark: Command, clicks: str
) -> None:
    result = queenspark("sql", "--timeout", "0.1", "-c", f"SELECT page FROM {clicks}; DESCRIBE {clicks}")
    assert result.code == 0
    assert "0 rows." in result.err
    assert "bigint" in result.out


def test_a_query_that_fails_is_an_error_after_its_rows(queenspark: Command, sql: Sql, clicks: str) -> None:
    def fail() -> None:
        eventually(lambda: len(sql.temporary_queues()) == 1)
        (queue,) = sql.temporary_queues()
        sql.emit(queue, '{"page": "home"}')
        sql.fail(queue, "it does not work")

    failing = Thread(target=fail)
    failing.start()
    result = queenspark("sql", "-c", f"SELECT page FROM {clicks}")
    failing.join()
    assert result.code == 1
    assert result.out.splitlines() == ["page", "home"]
    assert "it does not work" in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_select(shared_broker: Broker, sql: Sql, clicks: str, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "queenspark", "sql", "--json", "-c", f"SELECT page FROM {clicks}"]
    environment = clean_environment(url=shared_broker.url)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "columns" in json.loads(process.stdout.readline())
        sql.emit(sql.temporary_queues()[0], '{"page": "home"}')
        assert json.loads(process.stdout.readline()) == ["home"]
        process.send_signal(number)
        assert process.wait(20) == 0
    eventually(lambda: not sql.temporary_queues())


def test_statements_come_from_standard_input(queenspark: Command, clicks: str) -> None:
    assert "bigint" in queenspark("sql", stdin=f"DESCRIBE {clicks};".encode()).out
    assert "bigint" in queenspark("sql", "-f", "-", stdin=f"DESCRIBE {clicks};".encode()).out
    assert queenspark("sql", stdin=b"-- nothing").code == 2


def test_a_file_that_is_not_there_is_a_usage_error(queenspark: Command) -> None:
    result = queenspark("sql", "-f", "no-such-file.sql")
    assert result.code == 2
    assert "no-such-file.sql" in result.err


def test_without_a_broker_the_error_says_so(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEENSPARK_URL", f"http://127.0.0.1:{free_port()}")
    result = command("sql", "-c", "SHOW JOBS")
    assert result.code == 4
    assert "queenspark up" in result.err


def test_a_select_that_breaks_off_is_an_error(
    command: Command, shared_broker: Broker, clicks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Proxy(shared_broker.port) as proxy:
        proxy.fail("POST /api/v1/sql", Fault(truncate=300))
        monkeypatch.setenv("QUEENSPARK_URL", proxy.url)
        result = command("sql", "-c", f"SELECT page FROM {clicks}")
    assert result.code == 4
    assert "closed the connection" in result.err


def test_without_a_pipeline_the_hint_says_so(sql: Sql, shared_broker: Broker) -> None:
    report = "INSERT INTO queenspark.pipeline_stats (key, value) VALUES ('streams', '{\"error\": \"full\"}')"
    sql.run("DELETE FROM queenspark.pipeline_stats")
    sql.run(LEAD.replace("+", "-"))
    eventually(lambda: "no pipeline is leading" in no_rows_hint(shared_broker.url))
    with leading(sql.database_url):
        eventually(lambda: "no record matches, or no window" in no_rows_hint(shared_broker.url))
        sql.run(report)
        eventually(lambda: no_rows_hint(shared_broker.url).endswith("fails and restarts: full"))
        sql.run("DELETE FROM queenspark.pipeline_stats")
    assert "the pipeline is starting or not running" in no_rows_hint(f"http://127.0.0.1:{free_port()}")
