"""Generates the synchronous client from the asynchronous one: `src/queenspark/client/aio` → `…/client/sync`.

`make format` writes it, `make check` (with --check) fails if it is out of date. `tasks.py` is written by
hand on both sides: there a task of an event loop is a thread.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "src" / "queenspark" / "client"
BY_HAND = {"tasks.py"}
HEADER = "# Made from aio/{name} by `make format`: change that file, not this one.\n"
RUFF = Path(sys.executable).parent / "ruff"

WORDS = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"\1"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"\ba(close|read|next|iter_bytes)\b", r"\1"),
    (r"\bAsync(?=[A-Z])", ""),
]


def synchronous(name: str) -> str:
    """The synchronous form of a file."""
    text = (CLIENT / "aio" / name).read_text()
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    for command in (["check", "--fix-only", "--quiet", "-"], ["format", "--quiet", "-"]):
        where = ["--stdin-filename", str(CLIENT / "sync" / name)]
        done = subprocess.run(
            [RUFF, *command, *where], input=text, capture_output=True, text=True, check=True
        )
        text = done.stdout
    return HEADER.format(name=name) + text


def main() -> int:
    """Write the files, or with --check only compare them."""
    wanted = {
        path.name: synchronous(path.name)
        for path in (CLIENT / "aio").glob("*.py")
        if path.name not in BY_HAND
    }
    there = {
        path.name: path.read_text() for path in (CLIENT / "sync").glob("*.py") if path.name not in BY_HAND
    }
    differs = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    if "--check" in sys.argv:
        if differs:
            sys.stderr.write(f"client/sync is out of date ({', '.join(differs)}): run `make format`\n")
        return bool(differs)
    for name in differs:
        path = CLIENT / "sync" / name
        if name in wanted:
            path.write_text(wanted[name])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
