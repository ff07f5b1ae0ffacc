"""Next steps after the demo, in a checkout or with an installed package."""

from pathlib import Path

import queenspark

Step = tuple[str, str]
"""A command or a page, with its purpose."""

IN_A_CHECKOUT: tuple[Step, ...] = (
    ("make up", "start the same system for your own use"),
    (".venv/bin/python examples/01_quick_start.py", "a stream in a few lines, against `make up`"),
    ("docs/client.md, examples/README.md", "the Python client, and more examples"),
)
INSTALLED: tuple[Step, ...] = (
    ("queenspark up", "start the same system for your own use"),
    ("""queenspark push hello '{"n": 1}'""", "push a message; `queenspark pop hello` consumes it"),
    ("queenspark --help", "all commands"),
    ("python -m pydoc queenspark.client", "the Python client, included in `pip install queenspark`"),
)


def next_steps(package: Path = Path(queenspark.__file__).parent) -> tuple[Step, ...]:
    """The steps that fit the way in which `package` was installed."""
    root = package.parents[1]
    is_checkout = package.parent.name == "src" and (root / "Makefile").exists()
    return IN_A_CHECKOUT if is_checkout else INSTALLED
