"""The aggregates of a plan as typed slots of the window engine.

Slots are named by position, and positions depend on functions and types only. So jobs with different
statements and the same functions over columns of the same types share one engine spec.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ...windows import Aggregate as Slot
from ...windows import WindowSpec
from ...windows.column_types import type_text
from ..planning.grouped import Aggregate
from ..planning.plan import Plan


class Slots(NamedTuple):
    """The engine's spec of a plan, and the column of records or result in each slot."""

    spec: WindowSpec
    #: Record columns, by slot name.
    inputs: dict[str, str]
    #: Aggregate names, by slot name.
    results: dict[str, str]


def slots_of(plan: Plan) -> Slots | None:
    """Return the slots of a plan; None for one without state."""
    if plan.window is None:
        return None
    inputs: dict[str, str] = {}

    def slot(column: str) -> str:
        return inputs.setdefault(column, f"i{len(inputs)}")

    found = []
    results = {}
    for number, aggregate in enumerate(sorted(plan.aggregates, key=_order)):
        found.append(
            Slot(
                function=aggregate.function.lower(),
                inputs=tuple(slot(column) for column in aggregate.inputs),
                types=tuple(type_text(kind.column) for kind in aggregate.input_types),
                name=f"a{number}",
                distinct=aggregate.distinct,
                ignore_nulls=aggregate.ignore_nulls,
                where=None if aggregate.where is None else slot(aggregate.where),
                rows=aggregate.rows,
                parameter=_parameter(aggregate),
            )
        )
        results[f"a{number}"] = aggregate.name
    spec = msgspec.structs.replace(plan.window, aggregates=tuple(found))
    return Slots(spec, {name: column for column, name in inputs.items()}, results)


def engine_spec(plan: Plan) -> WindowSpec | None:
    """Return the windows and aggregates of a plan as an engine spec; None for one without state."""
    slots = slots_of(plan)
    return None if slots is None else slots.spec


def _parameter(aggregate: Aggregate) -> float | int | None:
    if aggregate.parameter is None:
        return None
    return int(aggregate.parameter) if aggregate.function == "LAG" else float(aggregate.parameter)


def _order(aggregate: Aggregate) -> tuple[str, ...]:
    """The sort key of aggregates: their engine properties, then their text."""
    types = " ".join(map(str, aggregate.input_types))
    flags = (aggregate.distinct, aggregate.ignore_nulls, aggregate.where is None, aggregate.rows)
    return aggregate.function, types, str(flags), str(aggregate.parameter), aggregate.name
