"""The plan of a query, in three stages.

*records*: a filter on records, with their key, their time and the inputs of the aggregates; *windows*: the
grouping; *rows*: a filter on results, with their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import polars as pl

from ...windows import WindowSpec
from ..duration import duration_text
from ..errors import did_you_mean
from ..expression_text import expression_text
from ..expressions import Compiled, Program, compile_expression
from ..expressions.conversion import widened
from ..expressions.logic import truth
from ..payload import Field
from ..source import Span
from ..statements import COUNTED, CreateStream, Item, Select, Star, Window
from ..tree import Call, Literal, Node, Path, with_paths
from ..types import DATE, INTERVAL, NULL, STRING, TIMESTAMP, SqlType, common, from_name
from .catalogue import Catalogue, Relation
from .grouped import Aggregate, GroupedScope, Inputs, aggregate_calls, no_aggregates
from .options import check_options, window_spec
from .refusals import Emission, Kind, Shape, check_shape
from .scope import RecordScope

_IDLE_US = 10_000_000
#: The column of an exploded array's elements.
EXPLODED = "exploded"


class OutputColumn(NamedTuple):
    """A column of the rows."""

    name: str
    type: SqlType
    value: Compiled


class Records(NamedTuple):
    """The first stage: over records, with the payload fields as columns."""

    fields: tuple[Field, ...]
    pseudo: tuple[str, ...]
    condition: Compiled | None
    key: tuple[tuple[str, Compiled], ...]
    time: Compiled | None
    inputs: tuple[tuple[str, Compiled], ...]
    condition_program: Program  # apply before reading the condition
    program: Program  # apply to the filtered records before reading the others


class Rows(NamedTuple):
    """The last stage: over records, or over keys, aggregates and window columns."""

    having: Compiled | None
    columns: tuple[OutputColumn, ...]
    program: Program  # apply before reading the others
    explode: Compiled | None = None
    whole_payload: bool = False


class Plan(NamedTuple):
    """A validated query."""

    kind: Kind
    emission: Emission
    updating: bool
    relation: Relation
    records: Records
    window: WindowSpec | None
    aggregates: tuple[Aggregate, ...]
    rows: Rows
    options: dict[str, str]
    warnings: tuple[str, ...]

    @property
    def columns(self) -> dict[str, SqlType]:
        """Names and types of the columns; empty for an unchanged payload."""
        return {column.name: column.type for column in self.rows.columns}


def plan_stream(statement: CreateStream, catalogue: Catalogue) -> Plan:
    """Plan a job, with the columns declared in its statement. Raises SqlError."""
    plan = plan_query(statement.query, catalogue)
    if not statement.columns:
        return plan
    span = statement.columns[0].span
    if plan.rows.whole_payload:
        raise span.error("SELECT * of a queue without a schema has no columns; name them")
    if len(statement.columns) != len(plan.rows.columns):
        count = len(plan.rows.columns)
        raise span.error(f"{len(statement.columns)} columns are declared and {count} are selected")
    columns = []
    for declared, found in zip(statement.columns, plan.rows.columns, strict=True):
        kind = from_name(declared.type)
        if common(found.type, kind) != kind:
            raise declared.span.error(
                f"{declared.name} is declared as {kind} and selected as {found.type}; CAST it in the SELECT"
            )
        columns.append(OutputColumn(declared.name, kind, widened(found.value, kind)))
    return plan._replace(rows=plan.rows._replace(columns=tuple(columns)))


def plan_query(query: Select, catalogue: Catalogue) -> Plan:
    """Validate a query against the catalogue, and split it into stages. Raises SqlError."""
    relation = catalogue.find(query.source)
    if relation is None:
        hint = did_you_mean(query.source, catalogue.names()) or "; SHOW STREAMS and SHOW QUEUES list them"
        raise query.source_span.error(f"there is no stream, source or queue {query.source}{hint}")
    scope = RecordScope(relation, query.alias)
    query = _normal(query, scope)
    shape = Shape(query, relation, aggregate_calls(query))
    check_shape(shape)
    condition_program, program = Program("c"), Program("r")
    condition = None
    if query.where is not None:
        compiled = compile_expression(query.where, scope.resolve, condition_program, no_aggregates("WHERE"))
        condition = truth(compiled, query.where.start, "WHERE")
    event_time = query.window is not None and (query.window.time is not None or relation.has_event_time)
    options = check_options(shape, event_time=event_time)
    warnings = _default_grace(shape, options, event_time=event_time)
    inputs = Inputs(scope, program)
    keys = _keys(shape, scope, program)
    rows = (
        _record_rows(shape, scope, inputs)
        if shape.kind in ("stateless", "rows")
        else _group_rows(shape, keys, inputs)
    )
    time = _time(query.window, scope, program)
    _check_partition_by(query, rows)
    return Plan(
        kind=shape.kind,
        emission=shape.emission,
        updating=shape.updating,
        relation=relation,
        records=Records(
            tuple(scope.fields),
            tuple(scope.pseudo),
            condition,
            tuple((name, compiled) for name, (_, compiled) in keys.items()),
            time,
            tuple(inputs.columns.items()),
            condition_program,
            program,
        ),
        window=window_spec(shape, options, event_time=event_time),
        aggregates=tuple(inputs.aggregates.values()),
        rows=rows,
        options=options,
        warnings=warnings,
    )


def _normal(query: Select, scope: RecordScope) -> Select:
    """Return the query with normalised paths, so that equal expressions have equal text."""

    def change(node: Node) -> Node:
        return with_paths(node, scope.normal)

    items = tuple(
        item if isinstance(item, Star) else msgspec.structs.replace(item, expression=change(item.expression))
        for item in query.items
    )
    window = query.window
    if window is not None and window.time is not None:
        window = msgspec.structs.replace(window, time=change(window.time))
    return msgspec.structs.replace(
        query,
        items=items,
        window=window,
        where=None if query.where is None else change(query.where),
        having=None if query.having is None else change(query.having),
        group_by=tuple(_grouped_by(change(node), items, scope) for node in query.group_by),
    )


def _grouped_by(node: Node, items: Sequence[Item | Star], scope: RecordScope) -> Node:
    """Resolve an expression of GROUP BY. A name unknown to records is an alias of a selected column."""
    if isinstance(node, Path) and len(node.steps) == 1 and not scope.knows(node):
        for item in items:
            if (
                isinstance(item, Item)
                and item.name is not None
                and item.name.lower() == str(node.steps[0]).lower()
            ):
                return item.expression
    return node


def _keys(shape: Shape, scope: RecordScope, program: Program) -> dict[str, tuple[Node, Compiled]]:
    nodes: tuple[Node, ...] = shape.query.group_by
    clause = "GROUP BY"
    if shape.kind == "rows":
        over = next(call.over for call in shape.calls if call.over is not None)
        nodes, clause = over.partition_by, "PARTITION BY"
    keys: dict[str, tuple[Node, Compiled]] = {}
    for node in nodes:
        if isinstance(node, Literal) and node.kind == "integer":
            raise node.start.error(f"{clause} {node.text} is not a position here; name the column")
        compiled = compile_expression(node, scope.resolve, program, no_aggregates(clause))
        if compiled.type.element is not None or compiled.type in (INTERVAL, NULL):
            raise node.start.error(f"{compiled.type} cannot be a key")
        keys[f"key:{expression_text(node)}"] = (node, compiled)
    return keys


def _time(window: Window | None, scope: RecordScope, program: Program) -> Compiled | None:
    if window is None or window.time is None:
        return None
    node = window.time
    compiled = (
        scope.time(node)
        if isinstance(node, Path)
        else compile_expression(node, scope.resolve, program, no_aggregates("WINDOW"))
    )
    if compiled.type not in (TIMESTAMP, DATE):
        raise node.start.error(
            f"the time of a window must be a TIMESTAMP, found {compiled.type}; "
            "use TIMESTAMP_MILLIS(…) or CAST"
        )
    return widened(compiled, TIMESTAMP)


def _default_grace(shape: Shape, options: dict[str, str], *, event_time: bool) -> tuple[str, ...]:
    """Default the grace to the delay of the rows of another job, unless the query sets it."""
    window, delay = shape.query.window, shape.relation.delay_us
    if window is None or window.kind in COUNTED or not event_time or window.time is not None or not delay:
        return ()
    reason = f"the rows of {shape.relation.name} come that long after their time"
    warnings = []
    if "grace" not in options:
        options["grace"] = duration_text(-(-delay // 1_000) * 1_000)
        warnings.append(f"grace defaults to {options['grace']}: {reason}")
    if "idle_timeout" not in options:
        # The other job waits for its own idle timeout first; its last rows come after that.
        options["idle_timeout"] = duration_text(-(-delay // 1_000) * 1_000 + _IDLE_US)
        warnings.append(f"idle_timeout defaults to {options['idle_timeout']}: {reason}")
    return tuple(warnings)


def _record_rows(shape: Shape, scope: RecordScope, inputs: Inputs) -> Rows:
    """Compile columns over records; aggregates with OVER are additional columns."""

    def special(node: Node) -> Compiled | None:
        return inputs.aggregate(node) if isinstance(node, Call) and node.over is not None else None

    program = Program("s")
    columns: dict[str, OutputColumn] = {}
    explode: Compiled | None = None
    whole = False
    for item in shape.query.items:
        if isinstance(item, Star):
            declared = scope.columns()
            if declared is None and len(shape.query.items) > 1:
                raise item.span.error(
                    f"{shape.relation.name} has no declared columns, so * is the payload and must be the only"
                    " item; name the columns, or declare them"
                )
            whole = declared is None
            for name in declared or ():
                _add(columns, name, scope.resolve(Path(steps=(name,), span=item.span)), item.span)
            continue
        node = item.expression
        if isinstance(node, Call) and node.name == "EXPLODE":
            if explode is not None:
                raise node.span.error("only one EXPLODE is allowed in a SELECT; use a second stream")
            explode, compiled = _exploded(node, scope, program)
        else:
            compiled = compile_expression(node, scope.resolve, program, special)
        _add(columns, _name(item), compiled, item.span)
    return Rows(None, tuple(columns.values()), program, explode, whole)


def _exploded(call: Call, scope: RecordScope, program: Program) -> tuple[Compiled, Compiled]:
    if len(call.arguments) != 1:
        raise call.span.error(f"EXPLODE has {len(call.arguments)} arguments; it needs one array")
    array = compile_expression(call.arguments[0], scope.resolve, program)
    if array.type.element is None:
        raise call.span.error(f"EXPLODE needs an ARRAY, found {array.type}; declare the column as ARRAY<…>")
    return array, Compiled(pl.col(EXPLODED), array.type.element)


def _group_rows(shape: Shape, keys: dict[str, tuple[Node, Compiled]], inputs: Inputs) -> Rows:
    """Compile columns over keys, aggregates and windows."""
    query = shape.query
    program = Program("s")
    grouped = GroupedScope(query, keys, inputs, program)
    columns: dict[str, OutputColumn] = {}
    for item in query.items:
        if isinstance(item, Item):
            _add(columns, _name(item), grouped.compile(item.expression), item.span)
    having = None
    if query.having is not None:
        having = truth(grouped.compile(query.having, aliases=True), query.having.start, "HAVING")
    return Rows(having, tuple(columns.values()), program)


def _add(columns: dict[str, OutputColumn], name: str, compiled: Compiled, span: Span) -> None:
    """Add a column; names differ by more than case."""
    if name.lower() in columns:
        raise span.error(f"two columns are named {name}; rename one with AS")
    if compiled.type == INTERVAL:
        raise span.error("an INTERVAL cannot be a column; add it to a TIMESTAMP")
    kind = STRING if compiled.type == NULL else compiled.type
    columns[name.lower()] = OutputColumn(name, kind, widened(compiled, kind))


def _name(item: Item) -> str:
    if item.name is not None:
        return item.name
    node = item.expression
    if isinstance(node, Path) and isinstance(node.steps[-1], str):
        return node.steps[-1]
    return expression_text(node)


def _check_partition_by(query: Select, rows: Rows) -> None:
    for option in query.options:
        if option.name != "partition_by":
            continue
        if rows.whole_payload:
            raise option.span.error(
                "partition_by needs columns, and SELECT * of a queue without a schema has none; name them"
            )
        names = [column.name for column in rows.columns]
        for wanted in (name.strip() for name in option.value.split(",")):
            if wanted.lower() not in (name.lower() for name in names):
                hint = did_you_mean(wanted, names) or f"; use one of {', '.join(names)}"
                raise option.span.error(f"partition_by names {wanted!r}, which is not selected{hint}")
