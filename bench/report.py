"""The figures as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.figure import Figure


def show(figures: Sequence[Figure], *, profile: bool) -> None:
    """Print one row per figure."""
    table = Table(title=f"Queenspark on this machine ({os.cpu_count()} cores, {platform.machine()})")
    table.add_column("what")
    for heading in ("measured", "bare PostgreSQL", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    if profile:
        table.add_column("cores: broker / PostgreSQL / generator", justify="right")
    for figure in figures:
        cells = [figure.what, text(figure.measured, figure), text(figure.bare, figure), f"{figure.ratio:.2f}"]
        if profile:
            cells.append(" / ".join(f"{cores:.2f}" for cores in figure.cores.values()))
        table.add_row(*cells)
    Console().print(table)


def text(value: float, figure: Figure) -> str:
    """A value with its unit."""
    return f"{value:,.0f} {figure.unit}" if figure.unit == "msg/s" else f"{value:.1f} {figure.unit}"


def save(figures: Sequence[Figure], file: Path) -> None:
    """Write the figures as JSON."""
    document = {"cores": os.cpu_count(), "figures": [figure.as_json() for figure in figures]}
    file.write_text(json.dumps(document, indent=2) + "\n")
