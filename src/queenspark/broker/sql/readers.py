"""Readers of a redefined job: whether they can continue, and whether its rows are updating now."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...sql import Plan, Relation, SqlError, parse_one, plan_query, plan_stream
from ...sql.planning.catalogue import OneRelation
from ...sql.source import Span
from ...sql.statements import CreateStream, Select
from ...store.job import Job
from ...store.job_change import JobChange
from ..http import Caller, Right
from .catalogue import job_relation, own_name
from .names import listed
from .planner import stored_plan
from .rights import may_on_job

#: Properties of a relation that filters and projections pass on to their readers.
_INHERITED = ("updating", "revisions")


class Outdated(NamedTuple):
    """A reader, and its stored query with the new properties of its source."""

    reader: Job
    query: dict[str, Any]


class _Changed(NamedTuple):
    """A job with other rows than before, and the jobs between it and the redefined one."""

    job: Job
    rows: Relation
    through: tuple[str, ...] = ()


class Readers:
    """Checks and updates the jobs and computing streams that read a job, directly or through others."""

    def __init__(self, change: JobChange, caller: Caller) -> None:
        self._change = change
        self._caller = caller

    async def check(self, job: Job, plan: Plan, span: Span) -> list[Outdated]:
        """Reject a change that a reader cannot follow; return the readers to update. Raises SqlError."""
        found: list[Outdated] = []
        old, rows = stored_plan(job), job_relation(job.full_name, plan, {})
        is_same = old is not None and _is_same(job_relation(job.full_name, old, {}), rows)
        changed = [] if is_same else [_Changed(job, rows)]
        while changed:
            source = changed.pop()
            for reader in await self._change.readers(source.job.queue_id):
                # A stream without a query only collects messages.
                if reader.body is None or reader.expires_at is not None:
                    continue
                if (before := stored_plan(reader)) is None:
                    continue
                relation = _stream_relation(reader, before, source.rows) if reader.is_stream else source.rows
                again = self._planned_again(reader, before, relation, source, job, span)
                if before.relation.updating != relation.updating or (
                    before.relation.revisions != relation.revisions
                ):
                    found.append(Outdated(reader, _with_properties(reader.query, relation)))
                rows = job_relation(reader.full_name, again, {})
                if not _is_same(job_relation(reader.full_name, before, {}), rows):
                    changed.append(_Changed(reader, rows, (*source.through, reader.full_name)))
        return found

    async def update(self, outdated: list[Outdated]) -> None:
        """Store the new queries, within the versions of the readers."""
        for reader, query in outdated:
            await self._change.set_query(reader, query)

    def _planned_again(
        self, reader: Job, before: Plan, relation: Relation, source: _Changed, job: Job, span: Span
    ) -> Plan:
        """Plan a reader over the new rows. Raises SqlError if it cannot continue."""
        name = job.full_name
        fix = f"drop {reader.full_name} first, or choose another name for this stream"
        try:
            again = _planned(reader, relation)
        except SqlError as error:
            reason = f"would fail: {error.message}; {fix}"
            if source.through and relation.updating and _can_read(reader, relation._replace(updating=False)):
                firsts = f" let {reader.full_name} read only the first revisions (WHERE _revision = 1),"
                reason = (
                    f"would count its rows twice: {name} would be updating; use late = 'drop',"
                    f"{firsts if relation.revisions else ''} {fix}"
                )
            raise self._refusal(reader, source, name, reason, span) from error
        # Values of computing streams that no longer fit are dead records, as in any queue.
        if not reader.is_stream and again.records.fields != before.records.fields:
            raise self._refusal(reader, source, name, f"its columns would have other types; {fix}", span)
        return again

    def _refusal(self, reader: Job, source: _Changed, name: str, reason: str, span: Span) -> SqlError:
        if not may_on_job(self._caller, reader, "read"):
            return span.error(
                f"a job that you have no access to reads {name}, and could not continue; choose another name"
                " for this stream"
            )
        what = "the windowed stream" if reader.is_stream else "the job"
        names = [each if self._caller.may(Right.QUEUE_READ, each) else None for each in source.through]
        through = f" through {listed(names)}" if names else ""
        return span.error(f"{what} {reader.full_name} reads {name}{through}, and {reason}")


class _Only(OneRelation):
    """A catalogue of one relation, by its name."""

    def find(self, name: str) -> Relation | None:
        """Return the relation if the name matches."""
        return super().find(name) if own_name(name) in self.names() else None


def _planned(reader: Job, relation: Relation) -> Plan:
    """Plan a reader over other rows. Raises SqlError."""
    # A sink keeps the columns of the stream at creation: with others it would write different files.
    is_job = not reader.is_stream and reader.definition.writes is None
    statement = parse_one(reader.statement if is_job else reader.query["select"])
    assert isinstance(statement, CreateStream | Select)
    if isinstance(statement, CreateStream):
        return plan_stream(statement, _Only(relation))
    return plan_query(statement, OneRelation(relation) if reader.is_stream else _Only(relation))


def _can_read(reader: Job, relation: Relation) -> bool:
    try:
        _planned(reader, relation)
    except SqlError:
        return False
    return True


def _stream_relation(reader: Job, before: Plan, rows: Relation) -> Relation:
    """The messages of a computing stream: those of all its queues, with the types of its creation."""
    is_alone = len(reader.definition.sources) == 1
    return before.relation._replace(
        updating=rows.updating or (before.relation.updating and not is_alone),
        revisions=rows.revisions and is_alone,
    )


def _with_properties(query: dict[str, Any], relation: Relation) -> dict[str, Any]:
    """Return a stored query with the inherited properties of a relation; false ones are not stored."""
    kept = {name: value for name, value in query["relation"].items() if name not in _INHERITED}
    given = {name: True for name in _INHERITED if getattr(relation, name)}
    return {**query, "relation": {**kept, **given}}


def _is_same(before: Relation, after: Relation) -> bool:
    """Whether readers see no difference; the delay only sets their defaults."""
    return before._replace(delay_us=0) == after._replace(delay_us=0)
