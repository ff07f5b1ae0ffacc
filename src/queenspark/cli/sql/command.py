"""`queenspark sql`: the command and its options."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.confirm import confirm
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.options import AsJson, Url, Yes, duration
from queenspark.cli.output import err, out, print_json_line, say
from queenspark.cli.sql.changes import Change, changes_of, print_changes, statements_there
from queenspark.cli.sql.problem import shown_problem
from queenspark.cli.sql.runner import Runner, StatementFailed
from queenspark.cli.sql.text import spoken
from queenspark.client.errors import SqlError
from queenspark.client.sql_results import SentResult
from queenspark.client.sync.lines import Lines

app = typer.Typer(invoke_without_command=True, no_args_is_help=False)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Validate without changing anything.")]


@app.callback()
def sql(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="SQL", help="Run these statements; repeatable."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="Run the statements of a file; - is stdin."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(parser=duration, metavar="SECONDS", help="Stop a SELECT after this time.")
    ] = None,
    dry_run: DryRun = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Run SQL statements: interactively, with -c, from a file, or from standard input."""
    if context.invoked_subcommand is not None:
        if command or file or timeout is not None or dry_run or url or as_json:
            raise Failure(f"Options must follow `{context.invoked_subcommand}`.", Exit.USAGE)
        return
    texts = list(command or [])
    if file is not None:
        texts.append(_read(file))
    elif not texts and not sys.stdin.isatty():
        texts.append(_read(Path("-")))
    with BrokerApi(url) as broker:
        runner = Runner(broker, as_json=as_json, dry_run=dry_run, timeout=timeout)
        if not texts:
            from queenspark.cli.sql.prompt import converse

            broker.health()
            converse(broker, runner)
        for text in texts:
            _check_not_empty(text)
        try:
            for text in texts:
                runner.run(text)
        except StatementFailed:
            raise typer.Exit(Exit.REFUSED) from None


@app.command("apply")
def apply_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Statements; - is standard input.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Apply a file of statements atomically, after showing the changes and asking for confirmation."""
    text = _read(file)
    _check_not_empty(text)
    with BrokerApi(url) as broker:
        changes = _changes(broker, text)
        wanted = [change for change in changes if change.changes]
        if not as_json:
            print_changes(changes, out())
        if wanted and not dry_run:
            confirm(f"Apply {_counted(wanted)}?", yes)
            results = _run(broker, text, dry_run=False)
        else:
            results = _run(broker, text, dry_run=True) if as_json else []
    if as_json:
        for result in results:
            print_json_line(result)
    elif not wanted:
        say("Nothing to do: everything matches the file.")
    else:
        say("Nothing was changed." if dry_run else f"Applied {_counted(wanted)}.")


def _changes(broker: BrokerApi, text: str) -> list[Change]:
    there: dict[str, str] = {}
    for shown in _run(broker, "SHOW STREAMS; SHOW SOURCES; SHOW SINKS", dry_run=False):
        there |= statements_there(shown)
    results = [msgspec.json.decode(each, type=SentResult) for each in _run(broker, text, dry_run=True)]
    if results[0].kind == "select":
        raise Failure("A SELECT cannot be applied: run it with `queenspark sql -f`.", Exit.USAGE)
    return changes_of(results, there)


def _run(broker: BrokerApi, text: str, *, dry_run: bool) -> list[msgspec.Raw]:
    """Run statements that are not a SELECT."""
    try:
        response = broker.sql(text, dry_run=dry_run)
    except SqlError as error:
        err().print(shown_problem(error, text))
        raise typer.Exit(Exit.REFUSED) from None
    assert not isinstance(response, Lines), "a dry run has found a SELECT before"
    return response


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if file == Path("-") else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"Cannot read {file}: {error}", Exit.USAGE) from None


def _check_not_empty(text: str) -> None:
    if not any(token.upper != ";" for token in spoken(text)):
        raise Failure("No statement to run.", Exit.USAGE)


def _counted(changes: list[Change]) -> str:
    return "1 change" if len(changes) == 1 else f"{len(changes):,} changes"
