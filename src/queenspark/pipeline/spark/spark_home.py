"""A Spark home whose Python workers import the installed PySpark.

Spark puts `python/lib/pyspark.zip` of its home before all other paths of its Python processes. Modules in a
zip file have no bytecode cache, so every new process compiles them, which takes a second.
"""

import hashlib
import os
from pathlib import Path
from uuid import uuid4

_ZIPPED = "python"


def linked_home(folder: Path, installed: Path) -> Path:
    """Return a folder of links to the installed Spark, except for its zipped Python modules.

    Each installation has its own. Where links are not possible, the installed Spark itself is returned.
    """
    home = folder / hashlib.sha256(os.fsencode(installed)).hexdigest()[:12]
    if os.pathsep in str(home):  # it becomes part of Java's class path
        return installed
    try:
        home.mkdir(parents=True, exist_ok=True)
        for entry in installed.iterdir():
            link = home / entry.name
            if entry.name == _ZIPPED or (link.is_symlink() and link.readlink() == entry):
                continue
            # Other processes may be starting with the same folder.
            new = home / f".{entry.name}-{uuid4().hex}"
            os.symlink(entry, new)
            os.replace(new, link)
    except OSError:
        return installed
    return home
