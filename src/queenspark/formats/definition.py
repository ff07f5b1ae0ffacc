"""The definition of a stream: its fields, with their names and units in every interface.

`StreamDefinition` is the body of POST /api/v1/stream/define. The annotation of each field has its names
elsewhere: in the engine's spec, in API responses, in the client and on the command line. A new field is one
line here; all users find the field by its name.

`columns`, `key`, `where`, `aggregates` and `having` are SQL expressions over a message (docs/sql.md). A
stream with one of them, with `emit` or with rows windows computes: see `StreamDefinition.computes`. With the
output `rows` it is a job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

DURATION_MS = 60_000
"""The default length of tumbling and sliding windows."""

LONGEST_LEASE_MS = 86_400_000
"""A day."""
LONGEST_RETENTION_MS = 2_000_000_000_000

Whole = Annotated[int, Meta(ge=-(2**48), le=2**48)]
LeaseMs = Annotated[int, Meta(ge=1)]
RetentionMs = Annotated[int, Meta(ge=1, le=LONGEST_RETENTION_MS)]

Storage = Literal["spec", "body", "stream", "request"]
"""Where a field is stored: the window spec, elsewhere in the version's body, the stream, or nowhere."""


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """The names of a field in other interfaces."""

    #: In the client and on the command line; the wire name if empty.
    name: str = ""
    storage: Storage = "spec"
    #: In storage; the client's name if empty.
    kept: str = ""
    #: In GET responses; the wire name in camel case if empty, hidden if None.
    shown: str | None = ""
    #: Milliseconds on the wire, microseconds in the spec, seconds on the command line.
    is_duration: bool = False
    #: Changing it starts a new version of the stream.
    is_shape: bool = False
    #: It applies to some kinds of windows only: choosing another kind drops it.
    is_size: bool = False


class StreamDefinition(msgspec.Struct):
    """The desired state of a stream. Omitted fields get their defaults."""

    name: Annotated[str, Names(storage="request", shown=None)]
    namespace: Annotated[str, Names(storage="request", shown=None)]
    source_queue_names: Annotated[list[str], Names(name="sources", storage="request", shown=None)] = []
    partitioned: Annotated[bool, Names(storage="body", is_shape=True)] = False
    window_type: Annotated[
        Literal["tumbling", "sliding", "session", "count", "rows"], Names(name="kind", is_shape=True)
    ] = "tumbling"
    window_duration_ms: Annotated[
        Whole | None,
        Names(name="duration", kept="duration_us", is_duration=True, is_shape=True, is_size=True),
    ] = None
    window_slide_ms: Annotated[
        Whole | None, Names(name="slide", kept="slide_us", is_duration=True, is_shape=True, is_size=True)
    ] = None
    window_gap_ms: Annotated[
        Whole | None, Names(name="gap", kept="gap_us", is_duration=True, is_shape=True, is_size=True)
    ] = None
    window_size_count: Annotated[Whole | None, Names(name="size", is_shape=True, is_size=True)] = None
    window_slide_count: Annotated[Whole | None, Names(name="step", is_shape=True, is_size=True)] = None
    window_grace_period_ms: Annotated[Whole, Names(name="grace", kept="grace_us", is_duration=True)] = 30_000
    window_lease_timeout_ms: Annotated[
        LeaseMs, Names(name="lease", storage="stream", kept="lease_timeout_ms", is_duration=True)
    ] = 60_000
    window_retention_ms: Annotated[
        RetentionMs | None,
        Names(name="retention", storage="stream", kept="window_retention_ms", is_duration=True),
    ] = None
    ordered: Annotated[bool, Names(storage="body", is_shape=True)] = True
    event_time: Annotated[str | None, Names(storage="body", is_shape=True)] = None
    late: Annotated[Literal["process", "warn", "drop"], Names()] = "process"
    idle_timeout_ms: Annotated[Whole | None, Names(name="idle", kept="idle_us", is_duration=True)] = None
    emit_empty: Annotated[bool, Names()] = False
    columns: Annotated[dict[str, str], Names(storage="body", is_shape=True)] = {}
    key: Annotated[list[str], Names(storage="body", is_shape=True)] = []
    where: Annotated[str | None, Names(storage="body", is_shape=True)] = None
    aggregates: Annotated[dict[str, str], Names(storage="body", is_shape=True)] = {}
    having: Annotated[str | None, Names(storage="body", is_shape=True)] = None
    emit: Annotated[Literal["final", "changes"] | None, Names(kept="emission", is_shape=True)] = None
    output: Annotated[Literal["windows", "rows"], Names(storage="request", shown=None)] = "windows"
    start: Annotated[str | None, Names(storage="request", shown=None)] = None
    reset: Annotated[bool, Names(storage="request", shown=None)] = False

    @property
    def computes(self) -> bool:
        """Whether it computes more than messages of a partition, windowed by time or count."""
        expressions = (self.columns, self.key, self.where, self.aggregates, self.having)
        return any(expressions) or self.window_type == "rows" or self.emit == "changes"


class Field(msgspec.Struct, frozen=True):
    """One field of a definition, with all of its names."""

    wire: str
    name: str
    kept: str
    shown: str | None
    storage: Storage
    is_duration: bool
    is_shape: bool
    is_size: bool

    def to_spec(self, value: Any) -> Any:
        """Convert a wire value to the spec."""
        return value * 1000 if self.is_duration and value is not None else value

    def from_spec(self, value: Any) -> Any:
        """Convert a spec value to the wire."""
        return value // 1000 if self.is_duration and value is not None else value


def _fields() -> dict[str, Field]:
    found = {}
    for wire, hint in get_type_hints(StreamDefinition, include_extras=True).items():
        names = next(each for each in hint.__metadata__ if isinstance(each, Names))
        name = names.name or wire
        shown = names.shown if names.shown != "" else re.sub(r"_(\w)", lambda match: match[1].upper(), wire)
        found[name] = Field(
            wire, name, names.kept or name, shown, names.storage, names.is_duration, names.is_shape,
            names.is_size,
        )  # fmt: skip
    return found


FIELDS = _fields()
"""All fields by name, in order of definition."""


if TYPE_CHECKING:

    class ShownDefinition(msgspec.Struct):
        """The fields that the API shows, with their types."""

else:
    ShownDefinition = msgspec.defstruct(
        "ShownDefinition",
        [
            (field.shown, get_type_hints(StreamDefinition)[field.wire])
            for field in FIELDS.values()
            if field.shown is not None
        ],
        kw_only=True,
        module=__name__,
    )


def to_wire(values: Mapping[str, Any]) -> dict[str, Any]:
    """Map values by field name to wire names, without those that are None."""
    return {FIELDS[name].wire: value for name, value in values.items() if value is not None}


def to_spec(definition: StreamDefinition) -> dict[str, Any]:
    """Return the window fields of a definition, as in the engine's spec."""
    return {
        field.kept: field.to_spec(value)
        for field in FIELDS.values()
        if field.storage == "spec" and (value := getattr(definition, field.wire)) is not None
    }


def shape(spec: Mapping[str, Any], body: object) -> tuple[Any, ...]:
    """Return the fields that make a version of a stream; all other changes apply within the version."""
    return tuple(
        spec.get(field.kept) if field.storage == "spec" else getattr(body, field.kept)
        for field in FIELDS.values()
        if field.is_shape
    )


def shown(spec: object, body: object, stream: object) -> dict[str, Any]:
    """Return a definition as shown by the API, from its stored parts."""
    kept = {"spec": spec, "body": body, "stream": stream}
    found = {}
    for field in FIELDS.values():
        if field.shown is not None:
            value = getattr(kept[field.storage], field.kept)
            found[field.shown] = field.from_spec(value) if field.storage == "spec" else value
    return found


def in_words_of_the_wire(reason: str) -> str:
    """Rewrite an error of the engine's spec with wire names and units."""
    spec = {field.kept: field for field in FIELDS.values() if field.storage == "spec"}
    if any(field.is_duration and field.kept in reason for field in spec.values()):
        reason = re.sub(r"-?\d{4,}", lambda number: str(int(number[0]) // 1000), reason)
    return re.sub(r"\w+", lambda word: spec[word[0]].wire if word[0] in spec else word[0], reason)
