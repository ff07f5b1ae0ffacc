"""What librdkafka offers in C only: a list of its settings, and fatal errors of a client."""

import ctypes
from pathlib import Path

from confluent_kafka import KafkaError, Producer, cimpl

_HEADER_BYTES = 16  # of a Python object; then comes the handle of librdkafka


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


def fail_for_good(producer: Producer) -> None:
    """Put a producer into the state in which it rejects all messages, as after a lost sequence number."""
    library = ctypes.CDLL(cimpl.__file__)
    library.rd_kafka_test_fatal_error.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]
    handle = ctypes.c_void_p.from_address(id(producer) + _HEADER_BYTES)
    code = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert library.rd_kafka_test_fatal_error(handle, code, b"a test") == 0
