"""A stored query: its text, and a snapshot of its relation at planning time.

The pipeline plans it again from this alone, at any time and with the same result: later changes of the queue
or the schema have no effect.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import msgspec

from ..canonical import canonical
from ..parser import parse_one, parse_type
from ..statements import Column, CreateStream, Select
from ..types import SqlType, from_name
from .catalogue import Catalogue, OneRelation, Relation, RelationKind
from .plan import Plan, plan_query, plan_stream

Output = Literal["rows", "windows"]


class FrozenRelation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A relation; types are in SQL syntax."""

    name: str
    kind: RelationKind
    columns: tuple[tuple[str, str], ...] | None = None
    paths: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    updating: bool = False
    revisions: bool = False
    has_event_time: bool = False
    delay_us: int = 0
    key_in_one_partition: bool = False
    bounded: bool = False

    @classmethod
    def of(cls, plan: Plan) -> FrozenRelation:
        """Snapshot the relation of a plan, with the paths that the plan can read."""
        relation = plan.relation
        flags = {name: getattr(relation, name) for name in cls.__struct_fields__[4:]}
        columns = relation.columns
        firsts = {field.steps[0] for field in plan.records.fields}
        return cls(
            relation.name,
            relation.kind,
            None if columns is None else tuple((name, str(kind)) for name, kind in columns.items()),
            tuple((path, str(kind)) for path, kind in relation.paths.items() if path[0] in firsts),
            **flags,
        )

    def thawed(self) -> Relation:
        """Restore the relation."""
        flags = {name: getattr(self, name) for name in self.__struct_fields__[4:]}
        columns = None if self.columns is None else {name: _type(text) for name, text in self.columns}
        paths = {path: _type(text) for path, text in self.paths}
        return Relation(self.name, self.kind, columns, paths, **flags)


class FrozenQuery(msgspec.Struct, frozen=True, omit_defaults=True):
    """A query with its relation, its declared columns, and its output: rows, or windows of messages."""

    select: str
    relation: FrozenRelation
    columns: tuple[tuple[str, str], ...] = ()
    output: Output = "rows"
    #: The original statement, in canonical form.
    statement: str = ""


def freeze(statement: CreateStream | Select, catalogue: Catalogue, output: Output = "rows") -> dict[str, Any]:
    """Plan a statement and return its stored form, for `thaw`. Raises SqlError."""
    query = statement.query if isinstance(statement, CreateStream) else statement
    plan = (
        plan_stream(statement, catalogue)
        if isinstance(statement, CreateStream)
        else plan_query(query, catalogue)
    )
    columns = statement.columns if isinstance(statement, CreateStream) else ()
    frozen: dict[str, Any] = msgspec.to_builtins(
        FrozenQuery(
            canonical(query),
            FrozenRelation.of(plan),
            tuple((column.name, str(from_name(column.type))) for column in columns),
            output,
            canonical(statement),
        )
    )
    return frozen


def thaw(frozen: dict[str, Any]) -> Plan:
    """Return the cached plan of a stored query."""
    return _thawed(msgspec.json.encode(frozen, order="sorted"))


@lru_cache(maxsize=10_000)
def _thawed(text: bytes) -> Plan:
    frozen = msgspec.json.decode(text, type=FrozenQuery)
    query = parse_one(frozen.select)
    assert isinstance(query, Select)
    catalogue = OneRelation(frozen.relation.thawed())
    if not frozen.columns:
        return plan_query(query, catalogue)
    columns = tuple(Column(name=name, type=parse_type(text)) for name, text in frozen.columns)
    return plan_stream(CreateStream(name="job", query=query, columns=columns), catalogue)


@lru_cache(maxsize=1000)
def _type(text: str) -> SqlType:
    return from_name(parse_type(text))
