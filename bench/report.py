"""The figures as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.figure import Figure

CORES = ("broker", "postgres", "generator")
WIDTH = 120
"""Columns of a table that goes into a file."""


def show(figures: Sequence[Figure], *, profile: bool) -> None:
    """Print one row per figure."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    table = Table(title=f"Queenspark on this machine ({os.cpu_count()} cores, {platform.machine()})")
    table.add_column("measurement", no_wrap=True)
    for heading in ("measured", "bare PostgreSQL", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    if profile:
        for part in CORES:
            table.add_column(f"{part} cores", justify="right")
    for figure in figures:
        cells = [figure.what, text(figure.measured, figure), text(figure.bare, figure), f"{figure.ratio:.2f}"]
        if profile:
            cells += [f"{figure.cores[part]:.2f}" for part in CORES]
        table.add_row(*cells)
    console.print(table)


def text(value: float, figure: Figure) -> str:
    """A value with its unit."""
    return f"{value:,.0f} {figure.unit}" if figure.unit == "msg/s" else f"{value:.1f} {figure.unit}"


def save(figures: Sequence[Figure], file: Path) -> None:
    """Write the figures as JSON."""
    document = {"cores": os.cpu_count(), "figures": [figure.as_json() for figure in figures]}
    file.write_text(json.dumps(document, indent=2) + "\n")
