"""The window spec of a stream: validated once, stored as JSON in the stream's definition."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from .aggregates import FUNCTIONS, Aggregate
from .errors import SpecError

Kind = Literal["tumbling", "sliding", "session", "count", "rows", "group"]
Clock = Literal["ingest", "event"]
Late = Literal["drop", "warn", "process"]
Emission = Literal["final", "changes"]

_SECOND = 1_000_000
_LONGEST = 2**60
#: Columns of every emitted row.
OUTPUT = (
    "stream", "version", "key", "window_id", "start_us", "end_us", "count", "revision", "sources", "replaces",
)  # fmt: skip
#: Additional columns of `changes` rows: time and position of the record.
OF_RECORD = ("time_us", "txid", "id")
#: Kinds without a clock.
COUNTED = ("count", "rows", "group")
_RECORD = ("stream", "version", "key", "source", "txid", "id", "created_us", "event_us")


class WindowSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The windows of one version of a stream. Times are in microseconds."""

    kind: Kind
    duration_us: int | None = None
    slide_us: int | None = None
    gap_us: int | None = None
    size: int | None = None
    step: int | None = None
    clock: Clock = "ingest"
    grace_us: int = 0
    idle_us: int | None = None
    late: Late = "process"
    keep_us: int | None = None
    emission: Emission = "final"
    emit_empty: bool = False
    aggregates: tuple[Aggregate, ...] = ()
    #: Keys of kinds without a clock expire after this time without records.
    ttl_us: int | None = None

    def __post_init__(self) -> None:
        for name, choices in (("kind", Kind), ("clock", Clock), ("late", Late), ("emission", Emission)):
            allowed = get_args(choices)
            if getattr(self, name) not in allowed:
                raise SpecError(f"{name} is {getattr(self, name)!r}; use one of {', '.join(allowed)}")
        self._check_shape()
        for name in ("grace_us", "idle_us", "keep_us", "ttl_us"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= _LONGEST:
                raise SpecError(f"{name} is {value}; it must not be negative or longer than {_LONGEST}")
        if self.clock == "event" and self.keep_us is not None and self.keep_us < self.idle:
            raise SpecError(f"keep_us is {self.keep_us}; it must be at least idle_us, {self.idle}")
        if self.emit_empty and (self.kind not in ("tumbling", "sliding") or self.emission != "final"):
            raise SpecError("emit_empty applies only to final tumbling and sliding windows; remove it")
        if self.kind == "rows" and self.emission != "changes":
            raise SpecError("emission must be changes for rows windows")
        if self.ttl_us is not None and self.kind not in COUNTED:
            raise SpecError(f"ttl_us does not apply to {self.kind} windows; remove it")
        self._check_aggregates()

    def _check_aggregates(self) -> None:
        taken = {*OUTPUT, *OF_RECORD}
        types: dict[str, str] = {}
        for each in self.aggregates:
            for name in (each.name, each.error):
                if name in taken:
                    raise SpecError(
                        f"aggregates: the name {name!r} is taken; give each one a name of its own"
                    )
                if name is not None:
                    taken.add(name)
            conditions = [] if each.where is None else [(each.where, "Boolean")]
            for name, kind in [*zip(each.inputs, each.types, strict=True), *conditions]:
                if name in _RECORD or types.setdefault(name, kind) != kind:
                    raise SpecError(f"aggregates: the input {name!r} is taken; it cannot be a {kind} as well")
            self._check_use(each)

    def _check_use(self, each: Aggregate) -> None:
        function = FUNCTIONS[each.function]
        if function.final_only and self.emission != "final":
            raise SpecError(f"aggregates: {each.function} needs the emission final")
        if function.rows_only and self.kind != "rows":
            raise SpecError(f"aggregates: {each.function} is for rows windows only")
        if each.rows is not None and (self.kind != "rows" or not 1 <= each.rows <= self.rows):
            raise SpecError(
                f"aggregates: {each.name!r} is over {each.rows} rows; "
                "that is possible in rows windows, from 1 to their size"
            )

    def _check_shape(self) -> None:
        needed = {
            "tumbling": ("duration_us",),
            "sliding": ("duration_us", "slide_us"),
            "session": ("gap_us",),
            "count": ("size",),
            "rows": ("size",),
            "group": (),
        }[self.kind]
        allowed = {*needed, "step"} if self.kind == "count" else set(needed)
        for name in ("duration_us", "slide_us", "gap_us", "size", "step"):
            value = getattr(self, name)
            if value is None:
                if name in needed:
                    raise SpecError(f"{name} is required for {self.kind} windows")
            elif name not in allowed:
                raise SpecError(f"{name} does not apply to {self.kind} windows; remove it")
            elif value < 1:
                raise SpecError(f"{name} is {value}; it must be at least 1")
            elif value > _LONGEST:
                raise SpecError(f"{name} is {value}; it must be at most {_LONGEST}")
        if self.kind == "sliding" and self.slide > self.duration:
            raise SpecError(f"slide_us ({self.slide_us}) must not exceed duration_us ({self.duration_us})")
        if self.kind == "count" and self.each > self.rows:
            raise SpecError(f"step ({self.step}) must not exceed size ({self.size})")

    @property
    def duration(self) -> int:
        """Length of tumbling and sliding windows."""
        return self.duration_us or 0

    @property
    def slide(self) -> int:
        """Distance between the starts of two windows."""
        return self.slide_us or self.duration

    @property
    def gap(self) -> int:
        """Inactivity that ends a session."""
        return self.gap_us or 0

    @property
    def rows(self) -> int:
        """Records of a count window, or of a rows buffer."""
        return self.size or 0

    @property
    def each(self) -> int:
        """Records between the starts of two count windows."""
        return self.step or self.rows

    @property
    def idle(self) -> int:
        """How long a key is idle before the ingest clock seals its windows."""
        return self.idle_us if self.idle_us is not None else max(self.grace_us, 10 * _SECOND)

    @property
    def keep(self) -> int:
        """How long sealed windows and idle keys are kept."""
        return self.keep_us if self.keep_us is not None else max(600 * _SECOND, self.idle)

    @property
    def remembers(self) -> bool:
        """Whether a sealed window can be emitted again."""
        return self.late != "drop"

    def to_json(self) -> str:
        """Encode as JSON; defaults are omitted."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> WindowSpec:
        """Decode from JSON; raises SpecError."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise SpecError(_plain(error)) from error


def _plain(error: Any) -> str:
    text = str(error)
    what, _, where = text.partition(" - at ")
    return f"{where.strip('`').lstrip('$.')}: {what}" if where.strip("`$") else what
