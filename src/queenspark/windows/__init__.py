"""The window engine: pure functions over columnar frames, independent of Spark, database and wall clock."""

from .aggregates import Aggregate
from .column_types import type_of, type_text
from .engine import Engine, Result
from .errors import InputError, RecordsNeeded, SpecError, StateError
from .merging import Merging
from .open_windows import open_windows
from .report import Report
from .spec import WindowSpec
from .state import State
from .summary import Open

__all__ = [
    "Aggregate",
    "Engine",
    "InputError",
    "Merging",
    "Open",
    "RecordsNeeded",
    "Report",
    "Result",
    "SpecError",
    "State",
    "StateError",
    "WindowSpec",
    "open_windows",
    "type_of",
    "type_text",
]
