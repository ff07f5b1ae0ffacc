"""The settings of the installed librdkafka."""

import ctypes
from pathlib import Path

from confluent_kafka import cimpl


def settings(folder: Path) -> dict[str, str]:
    """Return the description of each setting by name, as librdkafka documents them itself."""
    library, c = ctypes.CDLL(cimpl.__file__), ctypes.CDLL(None)
    c.fopen.restype = ctypes.c_void_p
    path = folder / "settings.md"
    file = ctypes.c_void_p(c.fopen(str(path).encode(), b"w"))
    library.rd_kafka_conf_properties_show(file)
    c.fclose(file)
    rows = (line.split("|", maxsplit=5) for line in path.read_text().splitlines() if line.count("|") >= 5)
    return {name.strip(): description for name, *_, description in rows if name.strip("- ") != "Property"}
