"""Every command and every option is explained, by `--help` and in docs/cli.md."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from queenspark.cli.app import app
from tests.command import Command

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def commands(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(node, "commands", {})
    for name, child in children.items():
        yield (*path, name), child
        yield from commands(child, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))
PATHS = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


def section(path: tuple[str, ...]) -> str:
    """The part of the page about a command or, for `queues show`, about its noun."""
    match = re.search(rf"^### `queenspark {path[0]}`\n(.*?)(?=^##|\Z)", DOCS, re.MULTILINE | re.DOTALL)
    assert match, f"docs/cli.md has no section about {path[0]}"
    return match[1]


def test_the_commands_are_the_ones_that_people_know() -> None:
    names = " ".join(sorted({path[0] for path in COMMANDS}))
    known = "audit demo dlq export groups import jobs keys me migrate pipeline pop push queues seek serve sql"
    known += " status streams tail ui up version windows"
    assert names == known


@PATHS
def test_a_command_is_documented_with_its_options(path: tuple[str, ...]) -> None:
    text = section(path)
    if len(path) > 1:
        assert f"`queenspark {' '.join(path)}" in text
    for parameter in COMMANDS[path].params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        for option in [*parameter.opts, *parameter.secondary_opts]:
            if option.startswith("--"):
                assert f"`{option}`" in text or f"`{option} " in text, f"{option} is not documented"


def test_the_documentation_has_no_command_that_does_not_exist() -> None:
    mentioned = set(re.findall(r"^(?:### |- )`queenspark ([a-z]+(?: [a-z]+)?)", DOCS, re.MULTILINE))
    assert mentioned <= {" ".join(path) for path in COMMANDS}


def test_the_documentation_has_no_option_that_does_not_exist() -> None:
    known = {
        option for found in COMMANDS.values() for p in found.params for option in [*p.opts, *p.secondary_opts]
    }
    assert set(re.findall(r"`(--[a-z-]+)", DOCS)) <= known | {"--help"}


@PATHS
def test_help_explains_a_command(path: tuple[str, ...], command: Command) -> None:
    result = command(*path, "--help")
    assert result.code == 0
    assert COMMANDS[path].help
    for parameter in COMMANDS[path].params:
        assert getattr(parameter, "help", None), f"{parameter.name} has no help"


def test_without_a_command_the_commands_are_listed(command: Command) -> None:
    result = command()
    assert "push" in result.out + result.err


def test_an_unknown_command_is_a_usage_error(command: Command) -> None:
    assert command("bogus").code == 2


def test_the_version_is_printed(command: Command) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", command("version").out)
