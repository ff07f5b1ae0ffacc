"""The `queenspark` command: a file per command or noun, `app` puts them together."""

from queenspark.cli.app import main

__all__ = ["main"]
