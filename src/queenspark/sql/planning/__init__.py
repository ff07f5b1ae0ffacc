"""Query planning: columns, windows and rows, validated before anything runs."""

from .catalogue import Catalogue, Relation
from .frozen import freeze, thaw
from .inserts import plan_insert
from .plan import Plan, plan_query, plan_stream

__all__ = ["Catalogue", "Plan", "Relation", "freeze", "plan_insert", "plan_query", "plan_stream", "thaw"]
