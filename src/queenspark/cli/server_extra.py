"""The extra `server`: the packages that run the system, which a plain installation leaves out."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec

from queenspark.cli.exits import Exit, Failure

NAMED_AT_MOST = 3


def require_server() -> None:
    """Fail, with the fix, when packages of the extra are missing."""
    missing = [name for name in _packages() if not _is_installed(name)]
    if missing:
        rest = len(missing) - NAMED_AT_MOST
        named = ", ".join(missing[:NAMED_AT_MOST]) + (f" and {rest} more" if rest > 0 else "")
        raise Failure(
            f"This command needs the server packages, which are not installed (missing: {named}); "
            "install them with: pip install 'queenspark[server]'",
            Exit.USAGE,
        )


def _packages() -> Iterator[str]:
    """The packages that the extra names in the metadata of this installation."""
    for requirement in requires("queenspark") or []:
        name, marker = re.match(r"[\w.-]+", requirement), requirement.partition(";")[2]
        if name and re.search(r"""extra\s*==\s*["']server["']""", marker):
            yield name[0]


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        # Spark's own archive, say, brings pyspark as a folder in the path, without metadata.
        return find_spec(name.replace("-", "_")) is not None
    return True
