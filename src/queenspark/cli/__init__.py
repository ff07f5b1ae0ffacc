"""The `queenspark` command: a file per command or noun, `app` puts them together."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while the commands are loaded prints no stack trace."""
    try:
        from queenspark.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
