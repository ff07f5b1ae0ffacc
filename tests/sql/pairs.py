"""Fixture files of pairs: SQL in, text out."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "fixtures"


def pairs(name: str) -> list[tuple[str, str]]:
    """The pairs of a fixture file; its first line is a comment."""
    blocks = (_FOLDER / name).read_text().split("\n\n")[1:]
    found = []
    for block in blocks:
        text, _, expected = block.strip("\n").partition("\n=> ")
        found.append((text, expected))
    return found
