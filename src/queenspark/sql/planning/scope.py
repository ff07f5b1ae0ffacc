"""Name resolution: alias, declared column (any case), pseudo-column, payload path (exact case)."""

from __future__ import annotations

import polars as pl

from ..errors import SqlError, did_you_mean
from ..expressions import Compiled
from ..expressions.arrays import element
from ..expressions.literals import literal
from ..payload import Field
from ..tree import Literal, Path
from ..types import BIGINT, JSON, STRING, TIMESTAMP, SqlType
from .catalogue import Relation

#: Pseudo-columns of a record.
PSEUDO: dict[str, SqlType] = {
    "_queue": STRING,
    "_partition": STRING,
    "_created_at": TIMESTAMP,
    "_transaction_id": STRING,
    "_event_time": TIMESTAMP,
}
#: The map of headers; `_headers.name` is a STRING.
HEADERS = "_headers"
REVISION = "_revision"
#: Pseudo-columns of a Kafka record, in addition to the others or instead of them.
KAFKA: dict[str, SqlType] = {
    "_key": STRING,
    "_partition": BIGINT,
    "_offset": BIGINT,
    "_timestamp": TIMESTAMP,
}
_FORCED = ("data", "payload")
#: Nesting of a payload that a query can reach into.
MOST_STEPS = 64


class RecordScope:
    """Names in a record, tracking the payload fields and pseudo-columns in use."""

    def __init__(self, relation: Relation, alias: str | None) -> None:
        self._relation = relation
        self._alias = alias
        self._types = PSEUDO | KAFKA if relation.kind == "kafka" else PSEUDO
        self.fields: dict[Field, None] = {}
        self.pseudo: dict[str, None] = {}

    def normal(self, path: Path) -> Path:
        """Normalise a path: no alias, and declared columns in their declared case."""
        first, *rest = path.steps
        if rest and str(first).lower() in self._aliases():
            if isinstance(rest[0], int):
                raise path.span.error(f"{first} is the stream, not an array; name a column of it")
            first, *rest = rest
        declared = self._declared(str(first))
        return Path(steps=(declared or first, *rest), span=path.span)

    def knows(self, path: Path) -> bool:
        """Whether the path is a name of a record."""
        try:
            RecordScope(self._relation, self._alias).resolve(path)
        except SqlError:
            return False
        return True

    def time(self, path: Path) -> Compiled:
        """Compile a path as a time: ISO 8601, or a number of milliseconds."""
        used_elsewhere = set(self.fields)
        found = self.resolve(path)
        steps = path.steps[1:] if self._is_forced(path) else path.steps
        is_field = str(steps[0]).lower() not in (*self._types, HEADERS, REVISION)
        if found.type == TIMESTAMP or not is_field or not (found.type.is_numeric or found.type.is_text):
            return found
        if (field := Field(steps, found.type)) not in used_elsewhere:
            self.fields.pop(field, None)
        return self._field(steps, TIMESTAMP)

    def resolve(self, path: Path) -> Compiled:
        """Return the column of a normalised path. Raises SqlError."""
        steps = path.steps
        first = str(steps[0])
        if len(steps) > MOST_STEPS:
            raise path.span.error(f"a path of {len(steps)} steps is too deep; the limit is {MOST_STEPS}")
        if self._is_forced(path):
            return self._payload(path, steps[1:], forced=True)
        declared = self._declared(first)
        if declared is not None:
            return self._column(path, declared, steps[1:])
        if first.lower() in self._types or first.lower() in (HEADERS, REVISION):
            return self._pseudo(path, first.lower(), steps[1:])
        return self._payload(path, steps, forced=False)

    def columns(self) -> dict[str, SqlType] | None:
        """The columns of `*`, or None for the whole payload."""
        return None if self._relation.columns is None else dict(self._relation.columns)

    def names(self) -> list[str]:
        """The available names, for hints."""
        paths = [str(path[0]) for path in self._relation.paths]
        return [*(self._relation.columns or ()), *dict.fromkeys(paths), *self._types, HEADERS]

    def _is_forced(self, path: Path) -> bool:
        """Whether the path starts with a word for the payload, and not with a column of that name."""
        first, *rest = path.steps
        return bool(rest) and str(first).lower() in _FORCED and self._declared(str(first)) is None

    def _aliases(self) -> set[str]:
        name = self._relation.name.rpartition(".")[2]
        return {self._alias.lower()} if self._alias is not None else {name.lower()}

    def _declared(self, name: str) -> str | None:
        return next((each for each in self._relation.columns or () if each.lower() == name.lower()), None)

    def _field(self, steps: tuple[str | int, ...], kind: SqlType) -> Compiled:
        field = Field(steps, kind)
        self.fields[field] = None
        return Compiled(pl.col(field.column), kind, pl.col(field.error))

    def _column(self, path: Path, name: str, below: tuple[str | int, ...]) -> Compiled:
        assert self._relation.columns is not None
        kind = self._relation.columns[name]
        if not below:
            return self._field((name,), kind)
        if kind == JSON:
            return self._field((name, *below), self._relation.paths.get((name, *below), STRING))
        if kind.element is not None and len(below) == 1 and isinstance(below[0], int):
            index = literal(Literal(kind="integer", text=str(below[0])))
            return element(self._field((name,), kind), index, path.span)
        raise path.span.error(f"the column {name} is a {kind} and has no nested fields; declare it as JSON")

    def _pseudo(self, path: Path, name: str, below: tuple[str | int, ...]) -> Compiled:
        if name == HEADERS:
            if len(below) != 1 or not isinstance(below[0], str):
                raise path.span.error("_headers is a map; name one of its values: _headers.name")
            column = f"{HEADERS}.{below[0]}"
            self.pseudo[column] = None
            return Compiled(pl.col(column), STRING)
        if below:
            raise path.span.error(f"{name} has no nested fields")
        if name == REVISION and not self._relation.revisions:
            raise path.span.error(
                "_revision is only in the rows of windows that are emitted FINAL, not of sessions;"
                " see _headers._revision"
            )
        self.pseudo[name] = None
        return Compiled(pl.col(name), BIGINT if name == REVISION else self._types[name])

    def _payload(self, path: Path, steps: tuple[str | int, ...], *, forced: bool) -> Compiled:
        kind = self._relation.paths.get(steps)
        if kind is None and forced:
            kind = STRING
        if kind is None and self._relation.columns is None and self._below_json(steps):
            kind = STRING
        if kind is None:
            first = str(steps[0])
            known = self._relation.columns is not None
            where = "is not a column" if known else "is not in the newest messages"
            fix = "declare it" if known else "declare the columns of the queue if it comes later"
            hint = did_you_mean(first, self.names()) or f"; {fix}, or write data.{first}"
            raise path.span.error(f"{_shown(path)} {where} of {self._relation.name}{hint}")
        return self._field(steps, kind)

    def _below_json(self, steps: tuple[str | int, ...]) -> bool:
        return any(self._relation.paths.get(steps[:size]) == JSON for size in range(1, len(steps)))


def _shown(path: Path) -> str:
    first, *rest = path.steps
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)
