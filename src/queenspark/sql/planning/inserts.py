"""INSERT INTO: constant rows in the types of a schema, as payloads."""

from __future__ import annotations

import msgspec
import polars as pl

from ..encoding import row_text
from ..errors import did_you_mean
from ..expressions import Compiled, Program, compile_expression
from ..expressions.casts import cast
from ..expressions.conversion import widened
from ..statements import Insert
from ..tree import Node, Path
from ..types import JSON, SqlType, common
from .catalogue import Catalogue, Relation
from .grouped import no_aggregates


def plan_insert(statement: Insert, catalogue: Catalogue) -> tuple[Relation, list[str]]:
    """Return the schema, and a payload for each row. Raises SqlError."""
    relation = catalogue.find(statement.name)
    if relation is None:
        hint = did_you_mean(statement.name, catalogue.names())
        raise statement.span.error(f"there is no stream {statement.name}{hint}")
    if relation.kind != "schema" or relation.columns is None:
        raise statement.span.error(
            f"{statement.name} is not declared over a queue; INSERT needs a declared stream"
        )
    payloads = []
    for row in statement.rows:
        if len(row) != len(relation.columns):
            raise row[0].start.error(
                f"{statement.name} has {len(relation.columns)} columns, and the row has {len(row)}"
            )
        values = zip(relation.columns.items(), row, strict=True)
        columns = {name: (_value(node, kind, name).value, kind) for (name, kind), node in values}
        payloads.append(str(pl.select(row_text(columns)).item()))
    return relation, payloads


def _value(node: Node, kind: SqlType, name: str) -> Compiled:
    """Compile a constant to the type of its column."""
    compiled = compile_expression(node, _no_names, Program("v"), no_aggregates("VALUES"))
    if common(compiled.type, kind) == kind:
        stored = widened(compiled, kind)
    elif kind == JSON and compiled.type.is_text:
        stored = _json(compiled, node, name)
    elif compiled.type.is_numeric and kind.is_numeric:
        stored = cast(compiled, kind, node.start)
    else:
        raise node.start.error(f"{name} is a {kind}, found {compiled.type}; use CAST")
    if stored.error is not None:
        reason = pl.select(stored.error).item()
        if reason is not None:
            raise node.start.error(f"the value of {name} fails: {reason}")
    return stored


def _json(compiled: Compiled, node: Node, name: str) -> Compiled:
    text = pl.select(compiled.value).item()
    if text is None:
        return compiled._replace(type=JSON)
    try:
        msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        raise node.start.error(f"the value of {name} is not valid JSON: {error}") from error
    except RecursionError as error:
        raise node.start.error(f"the value of {name} is not valid JSON: it is nested too deeply") from error
    return compiled._replace(type=JSON)


def _no_names(path: Path) -> Compiled:
    raise path.span.error(f"{path.steps[0]} is a name; VALUES takes constants (strings are in single quotes)")
