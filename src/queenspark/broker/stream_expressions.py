"""The SQL of a definition: its expressions, window and options as parts of a query."""

from __future__ import annotations

from typing import NamedTuple

from ..formats.definition import StreamDefinition
from ..sql import Relation
from ..sql.duration import duration_text
from ..sql.expression_parser import MOST_ROWS
from ..sql.statements import COUNTED, Emit, Option, Window, WindowKind
from ..sql.tree import Node, Path
from ..sql.window_parser import MOST_RECORDS
from ..store.names import MOST_NAME
from ..windows.event_time import steps
from .errors import bad_request
from .stream_columns import Columns
from .stream_fields import Fields, check_comparisons

_MOST_EXPRESSIONS = 100
_KINDS: dict[str, WindowKind] = {
    "tumbling": "TUMBLING", "sliding": "SLIDING", "session": "SESSION", "count": "COUNT", "rows": "ROWS",
}  # fmt: skip
#: Names that mean something else in expressions.
_TAKEN = ("data", "payload", "window_start", "window_end")


def check_expressions(request: StreamDefinition) -> None:
    """Reject names, counts and combinations of fields, before anything is parsed; raise 400."""
    if request.key and request.partitioned:
        raise bad_request(
            "partitioned and key cannot be combined: remove partitioned, and add _partition to key"
            " if it should be part of it"
        )
    most = MOST_ROWS if request.window_type == "rows" else MOST_RECORDS
    if (request.window_size_count or 0) > most:
        raise bad_request(f"window_size_count is {request.window_size_count}; the limit is {most}")
    named = {"columns": request.columns, "aggregates": request.aggregates}
    for field, given in {"key": request.key, **named}.items():
        if len(given) > _MOST_EXPRESSIONS:
            raise bad_request(f"{field} has {len(given)} expressions; the limit is {_MOST_EXPRESSIONS}")
    for field, names in named.items():
        for name in names:
            if not name or len(name) > MOST_NAME or name.startswith("_"):
                raise bad_request(
                    f"{field}: the name {name!r} must have 1 to {MOST_NAME} characters"
                    " and not begin with an underscore"
                )
    aggregates = {name.lower() for name in request.aggregates}
    for name in request.columns:
        if name.lower() in _TAKEN:
            raise bad_request(f"columns: the name {name!r} has a meaning of its own; choose another")
        if name.lower() in aggregates:
            raise bad_request(f"columns.{name}: an aggregate has the same name; rename one of them")


class Written(NamedTuple):
    """An expression as it was written, and with its columns written out."""

    own: Node
    whole: Node


class Expressions:
    """The expressions of a definition over the messages of its sources."""

    def __init__(self, request: StreamDefinition, relation: Relation, fields: Fields) -> None:
        """Parse them. Raises SqlError."""
        self._request = request
        self._relation = relation
        self._fields = fields
        self.columns = {
            name: fields.expression(f"columns.{name}", text) for name, text in request.columns.items()
        }
        self._by_name = Columns(self.columns, relation)
        self.key = [self._written(f"key[{number}]", text) for number, text in enumerate(request.key)]
        self.where = None if request.where is None else self._written("where", request.where)
        self.aggregates = {
            name: self._written(f"aggregates.{name}", text) for name, text in request.aggregates.items()
        }
        self.having = None if request.having is None else self._written("having", request.having)

    def column_of(self, node: Node) -> str | None:
        """The column that an expression consists of, if any."""
        if not isinstance(node, Path) or len(node.steps) != 1:
            return None
        return next((name for name in self.columns if name.lower() == str(node.steps[0]).lower()), None)

    def check_used(self) -> None:
        """Reject a column that has no effect. Raises SqlError."""
        for name, node in self.columns.items():
            if name.lower() not in self._by_name.used:
                raise node.start.error(
                    "no expression uses it: use it in key, where, aggregates or having, or remove it"
                )

    @property
    def kind(self) -> WindowKind:
        """The kind of its windows."""
        return _KINDS[self._request.window_type]

    @property
    def emit(self) -> Emit | None:
        """When it emits, if not by default."""
        return "CHANGES" if self._request.emit == "changes" and self.kind != "ROWS" else None

    def window(self) -> Window:
        """The window of the query."""
        request = self._request
        sizes = {
            "TUMBLING": (request.window_duration_ms, None),
            "SLIDING": (request.window_duration_ms, request.window_slide_ms),
            "SESSION": (request.window_gap_ms, None),
            "COUNT": (request.window_size_count, request.window_slide_count),
            "ROWS": (request.window_size_count, None),
        }[self.kind]
        size, step = (
            None if each is None else each if self.kind in COUNTED else each * 1000 for each in sizes
        )
        time = None
        if request.event_time is not None:
            path = [int(each) if each.isdigit() else each for each in steps(request.event_time)]
            time = Path(steps=("data", *path), span=self._fields.span("event_time"))
        span = self._fields.span("window_type")
        return Window(kind=self.kind, size=size or 0, step=step, time=time, span=span)

    def options(self) -> list[Option]:
        """The options of the query that concern time windows."""
        request = self._request
        if self.kind in COUNTED:
            return []
        given = [self.duration("grace", "window_grace_period_ms")]
        if request.idle_timeout_ms is not None and (
            request.event_time is not None or request.output == "rows"
        ):
            given.append(self.duration("idle_timeout", "idle_timeout_ms"))
        given.append(Option(name="late", value=request.late, span=self._fields.span("late")))
        if request.emit_empty:
            given.append(Option(name="emit_empty", value="true", span=self._fields.span("emit_empty")))
        return given

    def duration(self, name: str, field: str) -> Option:
        """An option with the value of a field in milliseconds."""
        value = duration_text(getattr(self._request, field) * 1000)
        return Option(name=name, value=value, span=self._fields.span(field))

    def _written(self, name: str, text: str) -> Written:
        own = self._fields.expression(name, text)
        whole = self._by_name.expanded(own)
        self._fields.write_out(whole)
        check_comparisons(whole, self._relation)
        return Written(own, whole)
