"""Plan execution: messages to records, and engine output to rows, on frames."""

from .messages import MESSAGE, MessageDecoder, reads_headers
from .records import RecordStage, Taken
from .rows import Given, RowStage
from .slots import engine_spec, slots_of
from .windows import WindowReader, shown_windows

__all__ = [
    "MESSAGE",
    "Given",
    "MessageDecoder",
    "RecordStage",
    "RowStage",
    "Taken",
    "WindowReader",
    "engine_spec",
    "reads_headers",
    "shown_windows",
    "slots_of",
]
