"""A Spark home whose Python workers import the installed PySpark.

Spark puts `python/lib/pyspark.zip` of its home before all other paths of its Python processes. Modules in a
zip file have no bytecode cache, so every new process compiles them, which takes a second.
"""

import os
from pathlib import Path
from uuid import uuid4

_ZIPPED = "python"


def link_home(home: Path, installed: Path) -> Path:
    """Fill `home` with links to the installed Spark, except for its zipped Python modules, and return it."""
    home.mkdir(parents=True, exist_ok=True)
    for entry in installed.iterdir():
        link = home / entry.name
        if entry.name == _ZIPPED or (link.is_symlink() and link.readlink() == entry):
            continue
        # Other processes may be starting with the same folder.
        new = home / f".{entry.name}-{uuid4().hex}"
        os.symlink(entry, new)
        os.replace(new, link)
    return home
