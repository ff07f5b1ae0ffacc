"""Rejection of well-formed queries that would count twice, never end, or cost too much."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..expression_text import expression_text
from ..statements import Item, Select, Star
from ..tree import Binary, Call, Node, Path
from ..tree import Literal as Constant
from . import aggregates
from .catalogue import Relation
from .scope import HEADERS, REVISION

MOST_WINDOWS = 1_000
Kind = Literal["stateless", "rows", "window", "unwindowed"]
Emission = Literal["final", "changes"]


class Shape(NamedTuple):
    """The shape of a query."""

    query: Select
    relation: Relation
    calls: list[Call]

    @property
    def kind(self) -> Kind:
        """The kind of state it keeps, if any."""
        if any(call.over is not None for call in self.calls):
            return "rows"
        if self.query.window is not None:
            return "window"
        return "unwindowed" if self.query.group_by or self.calls else "stateless"

    @property
    def emission(self) -> Emission:
        """Whether each record or each finished window emits a row."""
        window = self.query.window
        if window is not None and self.kind == "window":
            return "changes" if self.query.emit == "CHANGES" or window.kind == "ROWS" else "final"
        return "final" if self.query.emit == "FINAL" else "changes"

    @property
    def updating(self) -> bool:
        """Whether later rows replace earlier ones."""
        window = self.query.window
        if self.kind == "rows" or (window is not None and window.kind == "ROWS"):
            return False
        if self.kind == "stateless":
            return self.relation.updating and not self.counts_once
        if self.emission == "changes":
            return True
        if window is None or window.kind == "COUNT":
            return False
        return all(option.name != "late" or option.value != "drop" for option in self.query.options)

    @property
    def counts_once(self) -> bool:
        """Whether it reads only the first revisions of an updating stream, which count each record once."""
        return self.relation.revisions and _first_revisions(self.query.where)


def check_shape(shape: Shape) -> None:
    """Reject unsupported queries. Raises SqlError."""
    query, kind = shape.query, shape.kind
    if kind == "rows":
        _check_rows(shape)
    if kind in ("stateless", "rows"):
        if query.having is not None:
            raise query.having.start.error("HAVING needs GROUP BY, WINDOW or an aggregate; use WHERE")
        if query.emit == "FINAL":
            raise query.emit_span.error("EMIT FINAL needs a WINDOW: without one every record emits its row")
    else:
        for item in query.items:
            if isinstance(item, Star):
                raise item.span.error("* cannot be combined with GROUP BY or WINDOW; name the columns")
    if kind != "stateless":
        _check_explode(query)
        _check_updating(shape)
    if kind == "unwindowed" and shape.emission == "final" and not shape.relation.bounded:
        raise query.emit_span.error(
            f"{shape.relation.name} never ends, so EMIT FINAL would never emit a row; "
            "add a WINDOW, or use EMIT CHANGES"
        )
    _check_window(shape)
    _check_aggregates(shape)
    _check_kafka(shape)
    _check_files(shape)


def _check_rows(shape: Shape) -> None:
    query = shape.query
    if query.group_by or query.window is not None:
        call = next(call for call in shape.calls if call.over is not None)
        raise call.span.error("OVER cannot be combined with GROUP BY or WINDOW; use a second stream")
    first = None
    for call in shape.calls:
        if call.over is None:
            raise call.span.error(
                f"{call.name} has no OVER, but other aggregates do; add OVER to all of them, or use two"
                " streams"
            )
        first = first or call.over
        if call.over.partition_by != first.partition_by:
            raise call.over.span.error(
                "all OVER clauses of a SELECT must have the same PARTITION BY; use two streams"
            )


def _check_explode(query: Select) -> None:
    for item in query.items:
        if isinstance(item, Item):
            for node in item.expression.walk():
                if isinstance(node, Call) and node.name == "EXPLODE":
                    raise node.span.error(
                        "EXPLODE cannot be combined with aggregates, GROUP BY, WINDOW or OVER;"
                        " use EXPLODE in a separate stream first"
                    )


def _check_updating(shape: Shape) -> None:
    relation = shape.relation
    if not relation.updating or shape.counts_once:
        return
    clause = {"rows": "OVER", "window": "WINDOW"}.get(shape.kind, "GROUP BY")
    fix = "create it with late = 'drop'"
    if relation.revisions:
        fix += ", or read only the first revisions: WHERE _revision = 1"
    raise shape.query.source_span.error(
        f"{relation.name} is updating: later rows replace earlier ones, and {clause} would count both; {fix}"
    )


def _first_revisions(where: Node | None) -> bool:
    """Whether a condition selects first revisions only."""
    if isinstance(where, Binary) and where.operator == "AND":
        return _first_revisions(where.left) or _first_revisions(where.right)
    if not isinstance(where, Binary) or where.operator != "=":
        return False
    sides = (where.left, where.right)
    name = any(
        isinstance(side, Path) and [str(step).lower() for step in side.steps] == [REVISION] for side in sides
    )
    one = any(isinstance(side, Constant) and side.kind == "integer" and side.text == "1" for side in sides)
    return name and one


def _check_window(shape: Shape) -> None:
    window = shape.query.window
    if window is None:
        return
    if window.kind == "ROWS" and shape.query.emit == "FINAL":
        raise shape.query.emit_span.error(
            "ROWS windows have no end: every record emits its row; use EMIT CHANGES"
        )
    if window.kind == "SESSION" and shape.emission == "changes":
        raise shape.query.emit_span.error(
            "EMIT CHANGES is not supported for SESSION windows: the cost grows with the square of the session"
            " length; use EMIT FINAL"
        )
    if window.step is not None and -(-window.size // window.step) > MOST_WINDOWS:
        count = -(-window.size // window.step)
        raise window.span.error(
            f"each record would be in {count} windows; at most {MOST_WINDOWS} are allowed"
        )


def _check_aggregates(shape: Shape) -> None:
    for call in shape.calls:
        function = aggregates.find(call.name)
        if function is None:
            continue
        if function.where == "over" and call.over is None:
            raise call.span.error(f"{call.name} needs OVER (ROWS WINDOW BUFFER n ROWS)")
        if function.where == "final" and (call.over is not None or shape.emission != "final"):
            raise call.span.error(
                f"{call.name} requires EMIT FINAL, which needs a WINDOW or a source that ends"
            )


def _check_kafka(shape: Shape) -> None:
    relation, query = shape.relation, shape.query
    if relation.kind != "kafka" or relation.key_in_one_partition or shape.kind == "stateless":
        return
    ordered = next(
        (call for call in shape.calls if (f := aggregates.find(call.name)) and f.keeps_order), None
    )
    by_order = (
        shape.kind == "rows" or shape.emission == "changes" or (query.window and query.window.kind == "COUNT")
    )
    if by_order or ordered is not None:
        span = query.source_span if ordered is None else ordered.span
        what = "the order of records" if ordered is None else ordered.name
        raise span.error(
            f"{what} is undefined when the records of a key are in several Kafka partitions; "
            "declare the source with key_in_one_partition = 'true' if they are in one"
        )


def _check_files(shape: Shape) -> None:
    relation, query = shape.relation, shape.query
    if relation.kind != "files" or HEADERS in (relation.columns or ()):
        return
    parts: list[Node | None] = [item.expression for item in query.items if isinstance(item, Item)]
    parts += [node for call in shape.calls if call.over is not None for node in call.over.partition_by]
    parts += [*query.group_by, query.where, query.having, None if query.window is None else query.window.time]
    for node in (node for part in parts if part is not None for node in part.walk()):
        if isinstance(node, Path) and str(node.steps[0]).lower() == HEADERS:
            raise node.span.error(
                f"{relation.name} reads files, whose records have no headers; remove {expression_text(node)}"
            )
