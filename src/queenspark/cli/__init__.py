"""The `queenspark` command: a file per command or noun, `app` puts them together."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while the commands are loaded is no reason for a stack trace."""
    try:
        from queenspark.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
