"""`queenspark sql`: statements at a prompt, from the command line and from files, against a real broker."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.sql.completion import SqlCompleter
from queenspark.cli.sql.live import LiveRows
from queenspark.cli.sql.names import Names
from queenspark.cli.sql.prompt import converse
from queenspark.cli.sql.runner import Runner
from queenspark.cli.sql.values import Value
from queenspark.client.sql_results import SqlColumn
from tests.broker_process import Broker, clean_environment, free_port
from tests.command import Command
from tests.wire.api import Api
from tests.wire.deadline import eventually
from tests.wire.sql import Sql


@pytest.fixture
def sql(shared_broker: Broker) -> Iterator[Sql]:
    """The broker's SQL, and what the pipeline does."""
    with Api(shared_broker.url, shared_broker.database_url) as api:
        yield Sql(api)


@pytest.fixture
def clicks(sql: Sql) -> Iterator[str]:
    """A stream over a queue."""
    name = f"clicks_{uuid4().hex[:10]}"
    sql(f"CREATE STREAM {name} (page STRING, ms BIGINT) WITH (queue = '{name}')")
    yield name
    sql(f"DROP STREAM IF EXISTS {name} CASCADE")


@pytest.fixture
def emitted(sql: Sql) -> Iterator[Callable[..., None]]:
    """Pushes rows as the next SELECT's job does, beside the test: `emitted('{"page": "a"}')`."""
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
        f"The job busy_{clicks} is paused already, version 1.",
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
    assert line.endswith(f"CREATE STREAM {clicks} (page STRING, ms BIGINT) WITH (queue = '{clicks}')")
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
        f"pgae is no column of {clicks}; did you mean page?",
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
        f"The job busy_{clicks} would be defined, version 1.", f"1 row would go into {clicks}.",
    ]  # fmt: skip
    assert "not run" in queenspark("sql", "--dry-run", "-c", f"SELECT page FROM {clicks}").err
    assert sql.one(f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks}")["changed"]


def test_rows_of_a_select_are_aligned(queenspark: Command, clicks: str, emitted: Callable[..., None]) -> None:
    emitted('{"page": "home", "n": 1}', '{"page": null, "n": 1234567}', '{"page": "日本", "n": 30}')
    text = f"SELECT page, COUNT(*) AS n FROM {clicks} GROUP BY page EMIT CHANGES LIMIT 3"
    result = queenspark("sql", "-c", text)
    assert result.code == 0
    assert [line for line in result.out.splitlines() if not line.startswith("page")] == [
        "home              1",
        "NULL        1234567",
        "日本             30",
    ]
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


# apply


def test_a_file_is_applied_after_its_difference_was_shown(
    queenspark: Command, sql: Sql, clicks: str, tmp_path: Path
) -> None:
    job = f"busy_{clicks}"
    file = tmp_path / "jobs.sql"
    statement = f"CREATE OR REPLACE STREAM {job} AS SELECT page FROM {clicks}"
    file.write_text(
        f"CREATE OR REPLACE STREAM {clicks} (page STRING, ms BIGINT) WITH (queue = '{clicks}');\n{statement};"
    )
    refused = queenspark("sql", "apply", str(file))
    assert refused.code == 2
    assert refused.out.splitlines() == [
        f"unchanged {clicks}", f"create    {job}", f"      CREATE STREAM {job} AS SELECT page FROM {clicks}",
    ]  # fmt: skip
    assert "Apply 1 change? Say --yes" in refused.err
    assert "Nothing was changed" in queenspark("sql", "apply", str(file), "--dry-run").err
    assert queenspark("jobs", "show", job).code == 1
    assert "Applied 1 change." in queenspark("sql", "apply", str(file), "--yes").err
    assert sql.job(job)["version"] == 1
    assert "Nothing to do" in queenspark("sql", "apply", str(file)).err

    file.write_text(f"{statement} WHERE ms > 5; INSERT INTO {clicks} VALUES ('a', 1); DROP STREAM {job}")
    shown = queenspark("sql", "apply", str(file), "--dry-run").out.splitlines()
    assert shown == [
        f"replace   {job}, by position",
        f"    - CREATE STREAM {job} AS SELECT page FROM {clicks}",
        f"    + CREATE STREAM {job} AS SELECT page FROM {clicks} WHERE ms > 5",
        f"insert    1 row would go into {clicks}.",
        f"drop      {job}",
    ]


def test_applying_a_wrong_file_shows_the_error_and_changes_nothing(
    queenspark: Command, clicks: str, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.sql"
    file.write_text(f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks};\nSELECT page FROM {clicks}")
    result = queenspark("sql", "apply", str(file), "--yes")
    assert result.code == 1
    assert "stands alone" in result.err
    assert f"2 | SELECT page FROM {clicks}" in result.err
    assert queenspark("jobs", "show", f"busy_{clicks}").code == 1
    file.write_text(f"SELECT page FROM {clicks}")
    assert queenspark("sql", "apply", str(file), "--yes").code == 2


def test_apply_with_json_prints_the_results(queenspark: Command, clicks: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.sql"
    file.write_text(f"CREATE OR REPLACE STREAM busy_{clicks} AS SELECT page FROM {clicks}")
    (made,) = queenspark("sql", "apply", str(file), "--yes", "--json").json_lines()
    assert (made["name"], made["changed"]) == (f"busy_{clicks}", True)
    (again,) = queenspark("sql", "apply", str(file), "--json").json_lines()
    assert again["changed"] is False


def test_options_before_apply_are_not_ignored(queenspark: Command, tmp_path: Path) -> None:
    result = queenspark("sql", "--dry-run", "apply", str(tmp_path / "jobs.sql"))
    assert result.code == 2
    assert "after `apply`" in result.err


# The prompt


@pytest.fixture
def typed(
    shared_broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str], tuple[str, str]]:
    """Types at the prompt until Ctrl-D; what was printed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(keys: str) -> tuple[str, str]:
        with create_pipe_input() as keyboard, BrokerApi(shared_broker.url) as broker:
            keyboard.send_text(f"{keys}\x04")
            converse(broker, Runner(broker), input=keyboard, output=DummyOutput())
        return tuple(capsys.readouterr())  # type: ignore[return-value]

    return run


def test_statements_of_several_lines_are_typed(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, err = typed(f"INSERT INTO {clicks}\rVALUES ('a;b', 1)\r;\rDESCRIBE {clicks};\r")
    assert f"1 row inserted into {clicks}." in err
    assert "bigint" in out


def test_an_error_returns_to_the_prompt(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, err = typed(f"SELECT pgae FROM {clicks};\rDESCRIBE {clicks};\r")
    assert "did you mean page?" in err
    assert "bigint" in out


def test_ctrl_c_drops_what_is_typed(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, err = typed(f"DROP STREAM {clicks}\x03DESCRIBE {clicks};\r")
    assert "bigint" in out
    assert "Dropped" not in err


def test_help_and_exit_need_no_semicolon(typed: Callable[[str], tuple[str, str]], clicks: str) -> None:
    out, _ = typed(f"help\rexit\rDESCRIBE {clicks};\r")
    assert "Ctrl-D" in out
    assert "bigint" not in out


def test_names_at_the_broker_are_completed(shared_broker: Broker, sql: Sql, clicks: str) -> None:
    sql(f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks}")
    with BrokerApi(shared_broker.url) as broker:
        completer = SqlCompleter(Names(broker))

        def completed(before: str, after: str = "") -> list[str]:
            document = Document(before + after, len(before))
            return [each.text for each in completer.get_completions(document, CompleteEvent())]

        assert completed(f"SELECT page FROM {clicks[:-2]}") == [clicks]
        assert completed(f"PAUSE JOB busy_{clicks[:-2]}") == [f"busy_{clicks}"]
        assert completed("SELECT pag", f" FROM {clicks}") == ["page"]
        assert completed("SELECT COALES", f" FROM {clicks}") == ["COALESCE("]
        assert completed("SELECT pag", " FROM no_such_stream") == []
    with BrokerApi(f"http://127.0.0.1:{free_port()}") as nobody:
        assert Names(nobody).streams() == []


# Live rows


def test_a_head_is_repeated_on_a_terminal_when_its_columns_move() -> None:
    def printed(*, terminal: bool) -> list[str]:
        console = Console(force_terminal=terminal, color_system=None, record=True, width=80)
        rows = LiveRows([SqlColumn("page", "string"), SqlColumn("n", "bigint")], console)
        rows.print([[Value("a"), Value("1")]])
        rows.print([[Value("b"), Value("2")]])
        rows.print([[Value("x" * 12), Value("1000000")]])
        return console.export_text().splitlines()

    heads = [line for line in printed(terminal=True) if line.startswith("page")]
    assert heads == ["page             n", "page                n"]
    assert len([line for line in printed(terminal=False) if line.startswith("page")]) == 1
