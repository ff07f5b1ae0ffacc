"""Statements, as parsed."""

from __future__ import annotations

from typing import Literal as Choice
from typing import Union

import msgspec

from .source import NOWHERE, Span
from .tree import Node, TypeName

WindowKind = Choice["TUMBLING", "SLIDING", "SESSION", "COUNT", "ROWS"]
#: Windows by number of records, independent of time.
COUNTED = ("COUNT", "ROWS")
Emit = Choice["CHANGES", "FINAL"]
Object = Choice["STREAM", "SOURCE", "SINK"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a statement, or a statement."""

    span: Span = NOWHERE


class Column(Part, frozen=True, kw_only=True):
    """A declared column."""

    name: str
    type: TypeName


class Option(Part, frozen=True, kw_only=True):
    """`name = value` in WITH. Durations are in their shortest form."""

    name: str
    value: str


class Star(Part, frozen=True, kw_only=True):
    """`*`: the declared columns, or the payload unchanged."""


class Item(Part, frozen=True, kw_only=True):
    """An expression of a SELECT, under the name that AS gives it."""

    expression: Node
    name: str | None = None


class Window(Part, frozen=True, kw_only=True):
    """`WINDOW TUMBLING(…)`; sizes are microseconds, or records for COUNT and ROWS."""

    kind: WindowKind
    size: int
    step: int | None = None
    time: Node | None = None


class Select(Part, frozen=True, kw_only=True):
    """A query."""

    items: tuple[Item | Star, ...]
    source: str
    source_span: Span = NOWHERE
    alias: str | None = None
    where: Node | None = None
    group_by: tuple[Node, ...] = ()
    window: Window | None = None
    having: Node | None = None
    emit: Emit | None = None
    emit_span: Span = NOWHERE
    options: tuple[Option, ...] = ()
    limit: int | None = None


class CreateStream(Part, frozen=True, kw_only=True):
    """A job: its rows are messages of the queue with its name."""

    name: str
    query: Select
    columns: tuple[Column, ...] = ()
    replace: bool = False


class DeclareStream(Part, frozen=True, kw_only=True):
    """A schema over one or more queues; no job."""

    name: str
    columns: tuple[Column, ...]
    options: tuple[Option, ...]
    replace: bool = False


class CreateSource(Part, frozen=True, kw_only=True):
    """External data that jobs can read."""

    name: str
    columns: tuple[Column, ...]
    options: tuple[Option, ...]
    replace: bool = False


class CreateSink(Part, frozen=True, kw_only=True):
    """A job that writes to an external sink: a stream's rows, or those of its query."""

    name: str
    stream: str = ""
    stream_span: Span = NOWHERE
    query: Select | None = None
    options: tuple[Option, ...]
    replace: bool = False


class Insert(Part, frozen=True, kw_only=True):
    """Rows for the queue of a schema."""

    name: str
    rows: tuple[tuple[Node, ...], ...]


class Drop(Part, frozen=True, kw_only=True):
    """Removal of a stream, source or sink."""

    object: Object
    name: str
    if_exists: bool = False
    cascade: bool = False


class ControlJob(Part, frozen=True, kw_only=True):
    """PAUSE, RESUME or RESTART JOB."""

    action: Choice["PAUSE", "RESUME", "RESTART"]
    name: str


class Show(Part, frozen=True, kw_only=True):
    """A list of objects."""

    what: Choice["STREAMS", "SOURCES", "SINKS", "JOBS", "QUEUES", "FUNCTIONS"]


class Describe(Part, frozen=True, kw_only=True):
    """Details of one object."""

    name: str
    extended: bool = False


Creation = Union[CreateStream, DeclareStream, CreateSource, CreateSink]  # noqa: UP007 - msgspec reads it


class Explain(Part, frozen=True, kw_only=True):
    """How a query or a job would run."""

    statement: Select | Creation


Statement = Select | Creation | Insert | Drop | ControlJob | Show | Describe | Explain
