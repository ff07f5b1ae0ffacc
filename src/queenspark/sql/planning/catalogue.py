"""The planner's view of readable relations."""

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
    #: Path types from a sample of the payloads.
    paths: Mapping[Path, SqlType] = {}
    #: Whether later rows replace earlier ones.
    updating: bool = False
    #: Whether first revisions count each record once: true for final windows other than sessions.
    revisions: bool = False
    #: Whether its rows carry their own event time.
    has_event_time: bool = False
    #: The maximum delay of its rows, for the jobs that read them.
    delay_us: int = 0
    #: Whether each key comes from a single partition of Kafka.
    key_in_one_partition: bool = False
    #: Whether it is finite.
    bounded: bool = False


class Catalogue(Protocol):
    """Finds relations by name."""

    def find(self, name: str) -> Relation | None:
        """Return the relation, if it exists."""

    def names(self) -> Iterable[str]:
        """All names, for hints."""


class OneRelation:
    """A catalogue of one relation, by any name."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def find(self, name: str) -> Relation | None:
        """Return the relation."""
        return self._relation

    def names(self) -> Iterable[str]:
        """The name of the relation."""
        return [self._relation.name]
