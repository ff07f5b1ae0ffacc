"""The SQL dialect: parse, check and plan statements; no Spark, no database, no HTTP."""

from .canonical import canonical
from .errors import SqlError
from .parser import parse, parse_expression, parse_one

__all__ = ["SqlError", "canonical", "parse", "parse_expression", "parse_one"]
