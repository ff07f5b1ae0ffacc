"""Results of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...sql import Plan
from ...sql.types import SqlType

Result = dict[str, Any]


def table(
    kind: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]], **more: Any
) -> Result:
    """Build a result with rows."""
    heads = [{"name": name, "type": type_} for name, type_ in columns]
    return {"kind": kind, "columns": heads, "rows": [list(row) for row in rows], **more}


def type_name(kind: SqlType) -> str:
    """The name of a type in results."""
    return str(kind).lower()


def plan_columns(plan: Plan) -> list[tuple[str, str]]:
    """The columns of a query's rows. An unchanged payload is one column."""
    if plan.rows.whole_payload:
        return [("payload", "json")]
    return [(name, type_name(kind)) for name, kind in plan.columns.items()]


def kind_of_rows(updating: bool) -> str:
    """Whether later rows replace earlier ones, as a keyword."""
    return "updating" if updating else "append"
