"""The computed columns of a definition, which its other expressions use by name."""

from __future__ import annotations

from collections.abc import Mapping

from ..sql import Relation, plan_query
from ..sql.expression_parser import DEEPEST_TREE
from ..sql.expression_text import expression_text
from ..sql.planning.aggregates import find
from ..sql.planning.catalogue import OneRelation
from ..sql.statements import Item, Select
from ..sql.tree import Call, Node, Path, depth, moved, with_paths
from .stream_fields import MOST_TEXT

MESSAGE = "_message"
"""The alias of the messages: no payload field has this name, so no path starts with it by accident."""


class Columns:
    """Replaces the names of columns by their expressions, so that plans need not know them."""

    def __init__(self, columns: Mapping[str, Node], relation: Relation) -> None:
        self._columns = {name.lower(): node for name, node in columns.items()}
        self._sizes = {name: len(expression_text(node)) for name, node in self._columns.items()}
        #: The columns that other expressions use, in lower case.
        self.used: set[str] = set()
        for node in columns.values():
            self._check(node)
        if columns:
            items = tuple(Item(expression=node, name=name, span=node.span) for name, node in columns.items())
            # Errors of a column refer to it, not to the fields that use it.
            plan_query(Select(items=items, source="messages", alias=MESSAGE), OneRelation(relation))

    def expanded(self, node: Node) -> Node:
        """Return an expression with the columns written out. Raises SqlError."""
        uses = [
            name for each in node.walk() if isinstance(each, Path) and (name := _first(each)) in self._columns
        ]
        if not uses:
            return node
        self.used.update(uses)
        size = len(expression_text(node)) + sum(self._sizes[name] for name in uses)
        if size > MOST_TEXT:
            raise node.start.error(
                f"has {size} characters with its columns written out; the limit is {MOST_TEXT}"
            )
        found = with_paths(node, self._replaced)
        if depth(found) > DEEPEST_TREE:
            raise node.start.error(
                f"is too deep with its columns written out; the limit is {DEEPEST_TREE} levels"
            )
        return found

    def _replaced(self, path: Path) -> Node:
        column = self._columns.get(_first(path))
        if column is None:
            return path
        first, *rest = path.steps
        if isinstance(column, Path):
            return Path(steps=(*column.steps, *rest), span=path.span)
        if rest:
            raise path.span.error(
                f"the column {first} has no nested fields; write data.{expression_text(path)} for the payload"
            )
        return moved(column, path.span)

    def _check(self, node: Node) -> None:
        """Reject expressions that have no value for a single record. Raises SqlError."""
        for each in node.walk():
            if isinstance(each, Call) and find(each.name) is not None:
                raise each.span.error(f"the aggregate {each.name} is not allowed in columns; use aggregates")
            if isinstance(each, Call) and each.name == "EXPLODE":
                raise each.span.error(
                    "EXPLODE is not allowed in columns; use it in a SQL stream, and read that"
                )
            if isinstance(each, Path) and _first(each) in self._columns:
                raise each.span.error(
                    f"columns cannot use each other: write out the expression of {each.steps[0]},"
                    f" or data.{expression_text(each)} for the payload"
                )


def _first(path: Path) -> str:
    return str(path.steps[0]).lower()
