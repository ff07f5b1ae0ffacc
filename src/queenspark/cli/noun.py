"""Command groups such as `queues`, where the bare noun means `list`."""

import typer
from typer.core import TyperGroup


class ListByDefault(TyperGroup):
    """`queues --json` is `queues list --json`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put `list` in front where no command was named."""
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def noun(about: str) -> typer.Typer:
    """A group of commands about one kind of thing."""
    return typer.Typer(help=about, cls=ListByDefault, no_args_is_help=False)
