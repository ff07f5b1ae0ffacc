"""A table of figures, each printed as soon as it is measured."""

import sys

from rich.console import Console
from rich.table import Table


class Sheet:
    """A table of measurements, each with a figure for comparison and a target."""

    def __init__(self, title: str) -> None:
        self._table = Table(title=title)
        self._table.add_column("measurement")
        for heading in ("measured", "for comparison", "target"):
            self._table.add_column(heading, justify="right")
        self.progress = Console(stderr=True)

    def row(self, what: str, measured: str, comparison: str, target: str) -> None:
        """Add a figure."""
        self._table.add_row(what, measured, comparison, target)
        self.progress.print(f"{what}: {measured} {comparison}")

    def show(self) -> None:
        """Print the table."""
        Console(width=None if sys.stdout.isatty() else 120).print(self._table)
