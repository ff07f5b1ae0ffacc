"""What a planner has to know about the things that a query can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, Protocol

from ..types import SqlType

RelationKind = Literal["queue", "schema", "stream", "files", "kafka"]
Path = tuple[str | int, ...]


class Relation(NamedTuple):
    """A queue, a schema over queues, a job's rows, or an external source."""

    name: str
    kind: RelationKind
    #: Declared columns, or those of a job's SELECT; None for a queue without a schema.
    columns: Mapping[str, SqlType] | None = None
    #: Types of paths that a sample of the payloads showed.
    paths: Mapping[Path, SqlType] = {}
    #: Whether later rows replace earlier ones.
    updating: bool = False
    #: Whether the first revisions of its rows have no record twice: those of final windows, but for sessions.
    revisions: bool = False
    #: Whether its rows carry a time of their own.
    has_event_time: bool = False
    #: How late its rows can be, for the jobs that read them.
    delay_us: int = 0
    #: Whether each key comes from one partition of Kafka only.
    key_in_one_partition: bool = False
    #: Whether it ends.
    bounded: bool = False


class Catalogue(Protocol):
    """Finds relations by name."""

    def find(self, name: str) -> Relation | None:
        """The relation, if there is one."""

    def names(self) -> Iterable[str]:
        """All names, for hints."""
