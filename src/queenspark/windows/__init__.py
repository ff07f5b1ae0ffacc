"""The window engine: pure functions over columnar frames; no Spark, no database, no clock of its own."""

from .aggregates import Aggregate
from .engine import Engine, Open, Report, Result
from .errors import SpecError, StateError
from .spec import WindowSpec
from .state import State

__all__ = [
    "Aggregate",
    "Engine",
    "Open",
    "Report",
    "Result",
    "SpecError",
    "State",
    "StateError",
    "WindowSpec",
]
