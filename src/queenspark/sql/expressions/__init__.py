"""Scalar expressions: compiled to polars, equal to Spark SQL in ANSI mode."""

from .compiled import Compiled
from .compiler import compile_expression
from .program import Program
from .registry import ALIASES, FUNCTIONS, Function

__all__ = ["ALIASES", "FUNCTIONS", "Compiled", "Function", "Program", "compile_expression"]
