"""Spark properties from a file in the format of `spark-defaults.conf`."""

import re
from pathlib import Path

from ...settings import SettingsError, variable

_ENTRY = re.compile(r"(spark\.[^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)")


def read_properties(path: Path) -> dict[str, str]:
    """Parse a file: `spark.name value` or `spark.name=value`, one per line; `#` starts a comment."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise SettingsError(
            f"{variable('spark_properties')} is {str(path)!r}, which cannot be read: {error.strerror}"
        ) from None
    properties = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith(("#", "!")):
            continue
        match = _ENTRY.fullmatch(line)
        if match is None:
            raise SettingsError(
                f"{variable('spark_properties')}: line {number} of {path} is {line!r}: "
                "write a property that begins with `spark.`, and its value"
            )
        properties[match[1]] = match[2]
    return properties
