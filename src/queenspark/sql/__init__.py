"""The SQL dialect: parsing, validation and planning, independent of Spark, database and HTTP."""

from .canonical import canonical
from .errors import SqlError
from .parser import parse, parse_expression, parse_one
from .planning import Catalogue, Plan, Relation, freeze, plan_insert, plan_query, plan_stream, thaw

__all__ = [
    "Catalogue",
    "Plan",
    "Relation",
    "SqlError",
    "canonical",
    "freeze",
    "parse",
    "parse_expression",
    "parse_one",
    "plan_insert",
    "plan_query",
    "plan_stream",
    "thaw",
]
