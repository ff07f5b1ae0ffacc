"""Names in the results of windows and groups: keys, aggregates, and window columns."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from ..expression_text import expression_text
from ..expressions import Compiled, Program, compile_expression
from ..expressions.compiler import Special
from ..expressions.logic import truth
from ..statements import Item, Select
from ..tree import Call, Literal, Node, Path
from ..types import BIGINT, TIMESTAMP, SqlType
from . import aggregates
from .scope import RecordScope

_WINDOW_COLUMNS: dict[str, SqlType] = {"window_start": TIMESTAMP, "window_end": TIMESTAMP}
_RESULT_COLUMNS: dict[str, SqlType] = {"_count": BIGINT, "_revision": BIGINT}


class Aggregate(NamedTuple):
    """An aggregate of a plan, named by its text, so that its order among others is irrelevant."""

    name: str
    function: str
    inputs: tuple[str, ...]
    input_types: tuple[SqlType, ...]
    type: SqlType
    distinct: bool = False
    ignore_nulls: bool = False
    where: str | None = None
    rows: int | None = None
    parameter: str | None = None

    @property
    def error(self) -> str:
        """The name of the column of its errors."""
        return f"{self.name}!"

    @property
    def can_fail(self) -> bool:
        """Whether it can overflow, or exceed its limit of values."""
        adds_up = self.function == "SUM" and not self.type.is_float
        exact_mean = self.function == "AVG" and self.type.is_decimal
        return adds_up or exact_mean or self.distinct or self.function in aggregates.KEEPS_VALUES


def aggregate_calls(query: Select) -> list[Call]:
    """Return the outermost aggregates of SELECT and HAVING, without duplicates."""
    nodes = [item.expression for item in query.items if isinstance(item, Item)]
    if query.having is not None:
        nodes.append(query.having)
    found: list[Call] = []
    for node in nodes:
        found += _outermost(node)
    return found


def _outermost(node: Node) -> list[Call]:
    if isinstance(node, Call) and (aggregates.find(node.name) is not None or node.over is not None):
        return [node]
    found: list[Call] = []
    for child in node.children():
        found += _outermost(child)
    return found


def no_aggregates(clause: str) -> Special:
    """Reject aggregates in a clause."""

    def special(node: Node) -> Compiled | None:
        if isinstance(node, Call) and aggregates.find(node.name) is not None:
            hint = "use HAVING" if clause == "WHERE" else "use a second stream"
            raise node.span.error(f"the aggregate {node.name} is not allowed in {clause}; {hint}")
        return None

    return special


class Inputs:
    """The aggregates of a query, and their input columns."""

    def __init__(self, scope: RecordScope, program: Program) -> None:
        self._scope = scope
        self._program = program
        self.columns: dict[str, Compiled] = {}
        self.aggregates: dict[str, Aggregate] = {}

    def aggregate(self, call: Call) -> Compiled:
        """Return the result column of an aggregate. Raises SqlError."""
        function = aggregates.find(call.name)
        if function is None:
            known = ", ".join(aggregates.AGGREGATES)
            raise call.span.error(f"{call.name} is not an aggregate, and OVER needs one: {known}")
        name = expression_text(call)
        if name in self.aggregates:
            return _result(self.aggregates[name])
        count = 0 if call.star else len(call.arguments)
        if not call.star and not function.least <= count <= function.most:
            raise call.span.error(f"{call.name} has {count} arguments; it needs {_arguments(function)}")
        if call.distinct and function.name != "COUNT":
            raise call.span.error(f"DISTINCT is only for COUNT, not for {call.name}")
        if call.ignore_nulls and function.name not in aggregates.IGNORES_NULLS:
            raise call.span.error(f"IGNORE NULLS is only for FIRST and LAST, not for {call.name}")
        parameter, arguments = _parameter(call, function)
        inputs = [self._input(argument) for argument in arguments]
        types = tuple(self.columns[each].type for each in inputs)
        kind = BIGINT if call.star else function.result(types[0], arguments[0].span)
        if function.name in ("MIN_BY", "MAX_BY"):
            aggregates.AGGREGATES["MIN"].result(types[1], arguments[1].span)
        if call.distinct:
            aggregates.AGGREGATES["MIN"].result(types[0], arguments[0].span)
        where = None
        if call.where is not None:
            if function.name == "LAG":
                raise call.where.start.error("LAG has no FILTER; use WHERE, or CASE around it")
            where = self._input(call.where)
            truth(self.columns[where], call.where.span, "FILTER")
        self.aggregates[name] = Aggregate(
            name, function.name, tuple(inputs), types, kind, call.distinct, call.ignore_nulls, where,
            None if call.over is None else call.over.rows, parameter,
        )  # fmt: skip
        return _result(self.aggregates[name])

    def _input(self, node: Node) -> str:
        name = f"in:{expression_text(node)}"
        if name not in self.columns:
            self.columns[name] = compile_expression(node, self._scope.resolve, self._program, _no_nesting)
        return name


def _result(aggregate: Aggregate) -> Compiled:
    error = pl.col(aggregate.error) if aggregate.can_fail else None
    return Compiled(pl.col(aggregate.name), aggregate.type, error)


def _no_nesting(node: Node) -> Compiled | None:
    if isinstance(node, Call) and aggregates.find(node.name) is not None:
        raise node.span.error(f"the aggregate {node.name} is nested in another; use a second stream")
    return None


def _arguments(function: aggregates.AggregateFunction) -> str:
    if function.least == function.most:
        return str(function.least)
    return f"{function.least} to {function.most}"


def _parameter(call: Call, function: aggregates.AggregateFunction) -> tuple[str | None, tuple[Node, ...]]:
    """Split off the constant of PERCENTILE and LAG from the arguments."""
    if function.name == "PERCENTILE":
        share = call.arguments[1]
        if not isinstance(share, Literal) or share.kind not in ("integer", "decimal", "double"):
            raise share.span.error("the fraction of PERCENTILE must be a number from 0 to 1")
        if not 0 <= float(share.text) <= 1:
            raise share.span.error(f"the fraction of PERCENTILE is {share.text}; it must be from 0 to 1")
        return share.text, call.arguments[:1]
    if function.name == "LAG":
        offset = call.arguments[1] if len(call.arguments) > 1 else Literal(kind="integer", text="1")
        if not isinstance(offset, Literal) or offset.kind != "integer":
            raise offset.span.error("the offset of LAG must be a whole number")
        rows = 0 if call.over is None else call.over.rows
        if not 1 <= int(offset.text) < rows:
            raise call.span.error(
                f"the offset of LAG ({offset.text}) must be at least 1 and less than its BUFFER ({rows} ROWS)"
            )
        return offset.text, call.arguments[:1]
    return None, call.arguments


class GroupedScope:
    """Names in the rows stage of a query with groups or windows."""

    def __init__(
        self, query: Select, keys: dict[str, tuple[Node, Compiled]], inputs: Inputs, program: Program
    ) -> None:
        self._query = query
        self._program = program
        self._keys = keys
        self._inputs = inputs

    def compile(self, node: Node, *, aliases: bool = False) -> Compiled:
        """Compile an expression over keys, aggregates and window columns; HAVING may also use aliases."""
        resolve = self._with_aliases if aliases else self._resolve
        return compile_expression(node, resolve, self._program, self._special)

    def _special(self, node: Node) -> Compiled | None:
        for name, (key, compiled) in self._keys.items():
            if node == key:
                return Compiled(pl.col(name), compiled.type)
        if isinstance(node, Call) and (aggregates.find(node.name) is not None or node.over is not None):
            return self._inputs.aggregate(node)
        return None

    def _resolve(self, path: Path) -> Compiled:
        name = str(path.steps[0]).lower()
        if len(path.steps) == 1 and name in _RESULT_COLUMNS:
            return Compiled(pl.col(name), _RESULT_COLUMNS[name])
        if len(path.steps) == 1 and name in _WINDOW_COLUMNS:
            if self._query.window is None:
                raise path.span.error(f"{name} needs a WINDOW")
            return Compiled(pl.col(name), _WINDOW_COLUMNS[name])
        text = expression_text(path)
        raise path.span.error(
            f"{text} is neither in GROUP BY nor in an aggregate; group by it, or write LAST({text})"
        )

    def _with_aliases(self, path: Path) -> Compiled:
        if len(path.steps) == 1:
            for item in self._query.items:
                if (
                    isinstance(item, Item)
                    and item.name is not None
                    and item.name.lower() == str(path.steps[0]).lower()
                ):
                    return self.compile(item.expression)
        return self._resolve(path)
