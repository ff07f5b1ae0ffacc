"""Confirmation of destructive commands."""

import sys

import typer

from queenspark.cli.exits import Exit, Failure


def confirm(question: str, yes: bool) -> None:
    """Ask for confirmation, unless `--yes` was given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{question} Pass --yes to confirm.", Exit.USAGE)
    typer.confirm(question, abort=True, err=True)
