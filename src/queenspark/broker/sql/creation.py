"""CREATE STREAM, SOURCE and SINK: jobs, and schemas over queues."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from ...connectors.checks import Unreachable, check_source
from ...sql import SqlError, canonical, parse_one
from ...sql.canonical import shown
from ...sql.parser import parse_type
from ...sql.source import Span
from ...sql.statements import Column, CreateSink, CreateSource, CreateStream, DeclareStream
from ...sql.types import from_name
from ...store.job import How, Job, WantedJob
from ...store.job_change import JobChange
from ..http import Caller, Right
from .catalogue import outside_of, own_name, queues_of
from .names import check_new_name, listed, split_name
from .planner import Planned, Planner, stored_plan
from .readers import Readers
from .replacement import how_it_changes
from .rights import may_on_job
from .sinks import check_columns, check_target, query_of, written_by
from .table import Result


class Creation:
    """Creates and replaces jobs and schemas."""

    def __init__(self, change: JobChange, planner: Planner, most_alone: int, caller: Caller) -> None:
        self._change = change
        self._planner = planner
        self._most_alone = most_alone
        self._caller = caller
        self._readers = Readers(change, caller)

    async def create(self, statement: CreateStream) -> Result:
        """Create or redefine a job. Raises SqlError."""
        check_new_name(statement.name, statement.span)
        if (declared := await self._change.relations.find(own_name(statement.name))) is not None:
            what = "a stream over a queue" if declared.kind == "schema" else f"a {declared.kind}"
            raise statement.span.error(
                f"{statement.name} is {what}, without a job; DROP it first, or choose another name"
            )
        job = await self._change.find(*split_name(statement.name))
        if job is not None and (not statement.replace or job.definition.writes is not None):
            raise statement.span.error(
                f"the job {job.full_name} already exists; use CREATE OR REPLACE STREAM, or DROP it first"
            )
        statement = msgspec.structs.replace(statement, name=own_name(statement.name), replace=False)
        if job is not None and canonical(statement) == job.statement and not await self._is_broken(job):
            return _created(job, changed=False)
        planned = await self._planner.plan(statement)
        wanted = await self._planner.wanted(statement.name, statement.query, planned)
        warnings = planned.plan.warnings
        await self.check_alone(wanted, statement.span, job)
        if job is None:
            return _created(await self._change.create(wanted), changed=True, warnings=warnings)
        await self._check_cycle(job, statement, planned)
        outdated = await self._readers.check(job, planned.plan, statement.span)
        if wanted.retention_seconds is None and _has_retention(job):
            wanted = msgspec.structs.replace(wanted, retention_seconds=0)
        how = await self._how(job, statement, planned, wanted)
        replaced = await self._change.replace(job, wanted, how)
        await self._readers.update(outdated)
        return {**_created(replaced, changed=True, warnings=warnings), "how": how}

    async def declare(self, statement: DeclareStream) -> Result:
        """Declare the columns of queues. Raises SqlError."""
        name = await self._name_without_job(statement)
        declared = await self._change.relations.find(name)
        if declared is not None and not statement.replace:
            raise statement.span.error(
                f"the stream {name} already exists; use CREATE OR REPLACE STREAM, or DROP it first"
            )
        statement = msgspec.structs.replace(statement, name=name, replace=False)
        text = canonical(statement)
        changed = declared is None or declared.statement != text
        span = statement.options[0].span
        queues = queues_of(statement)
        for queue in queues:
            check_new_name(queue, span)
        await self._planner.catalogue.refuse_jobs(queues, span)
        if changed:
            await self._change.ensure_queues(queues)
            await self._change.relations.set(name, "schema", text)
        return {"kind": "declare_stream", "name": name, "changed": changed, "statement": text}

    async def create_source(self, statement: CreateSource) -> Result:
        """Declare an external source, after checking that it is readable. Raises SqlError.

        Undeclared columns are inferred from a sample once and stay fixed.
        """
        name = await self._name_without_job(statement)
        declared = await self._change.relations.find(name)
        if declared is not None and (declared.kind != "source" or not statement.replace):
            raise statement.span.error(
                f"{name} is already declared; use CREATE OR REPLACE SOURCE for a source, or DROP it first"
            )
        statement = msgspec.structs.replace(statement, name=name, replace=False)
        outside = outside_of(statement)
        given = tuple((column.name, str(from_name(column.type))) for column in statement.columns)
        try:
            columns = await asyncio.to_thread(check_source, outside.connector, outside.options, given)
        except Unreachable as error:
            raise statement.span.error(str(error)) from error
        if not given:
            found = tuple(Column(name=each, type=parse_type(kind)) for each, kind in columns)
            statement = msgspec.structs.replace(statement, columns=found)
        text = canonical(statement)
        changed = declared is None or declared.statement != text
        if changed:
            await self._change.relations.set(name, "source", text)
        return {"kind": "create_source", "name": name, "changed": changed, "statement": shown(statement)}

    async def create_sink(self, statement: CreateSink) -> Result:
        """Create or redefine a job that writes to an external sink. Raises SqlError."""
        check_new_name(statement.name, statement.span)
        name = own_name(statement.name)
        if await self._change.relations.find(name) is not None:
            raise statement.span.error(f"{name} is already declared; DROP it first, or choose another name")
        job = await self._change.find(*split_name(name))
        if job is not None and (job.definition.writes is None or not statement.replace):
            raise statement.span.error(
                f"the job {name} already exists; use CREATE OR REPLACE SINK for a sink, or DROP it first"
            )
        statement = msgspec.structs.replace(statement, name=name, replace=False)
        text, writes = shown(statement), written_by(statement)
        is_same = job is not None and text == job.statement and writes == job.definition.writes
        if job is not None and is_same and not await self._is_broken(job):
            return _created(job, changed=False)
        query = await query_of(statement, self._planner.catalogue)
        planned = await self._planner.plan(query)
        if statement.query is not None and planned.source.source is None:
            raise query.source_span.error(
                f"{query.source} is not an external source; create a stream from the query, and a sink"
                " FROM that stream"
            )
        check_columns(statement, planned.plan)
        await check_target(self._change, statement, job)
        wanted = await self._planner.wanted(name, query, planned)
        wanted = msgspec.structs.replace(wanted, query={**wanted.query, "statement": text}, writes=writes)
        await self.check_alone(wanted, statement.span, job)
        warnings = planned.plan.warnings
        if job is None:
            return _created(await self._change.create(wanted), changed=True, warnings=warnings)
        replaced = await self._change.replace(job, wanted, "by position")
        return {**_created(replaced, changed=True, warnings=warnings), "how": "by position"}

    async def check_alone(self, wanted: WantedJob, span: Span, job: Job | None = None) -> None:
        """Enforce the limit on jobs with their own Spark query. Raises SqlError."""
        if wanted.reads is None and wanted.writes is None:
            return
        others = [each for each in await self._change.alone() if job is None or each.id != job.id]
        if len(others) >= self._most_alone:
            names = listed([self._shown_name(each) for each in others])
            raise span.error(
                f"{len(others)} jobs over external sources and sinks already exist ({names or 'none'}),"
                " and each has a Spark query of its own; DROP one, or raise QUEENSPARK_EXTERNAL_JOBS"
            )

    def _shown_name(self, job: Job) -> str | None:
        """The name of a job for an error; None if the caller may not see it."""
        if job.expires_at is not None:
            return "a SELECT"
        return job.full_name if may_on_job(self._caller, job, "read") else None

    async def _name_without_job(self, statement: DeclareStream | CreateSource) -> str:
        """Return the name of a relation to declare. Raises SqlError if it is invalid, or that of a job."""
        check_new_name(statement.name, statement.span)
        name = own_name(statement.name)
        if await self._change.find(*split_name(name)) is not None:
            raise statement.span.error(
                f"the job {name} already exists; choose another name, or DROP it first"
            )
        return name

    async def _how(self, job: Job, statement: CreateStream, planned: Planned, wanted: WantedJob) -> How:
        names = tuple(source.queue for source in job.definition.sources)
        if job.definition.reads != wanted.reads:
            return "by position"
        if names != planned.source.queues or await self._is_broken(job):
            return "by position"
        old = parse_one(job.statement)
        assert isinstance(old, CreateStream)
        return how_it_changes(old, statement, job.query, planned.frozen)

    async def _is_broken(self, job: Job) -> bool:
        """Whether a job cannot be planned, or its source queue was deleted or external source redefined."""
        if await asyncio.to_thread(stored_plan, job) is None:
            return True
        if (reads := job.definition.reads) is not None:
            declared = await self._change.relations.find(reads.name)
            source = None if declared is None else parse_one(declared.statement)
            return not isinstance(source, CreateSource) or outside_of(source) != reads
        names = [source.queue for source in job.definition.sources]
        ids = await self._change.queue_ids(names)
        return any(ids.get(source.queue) != source.queue_id for source in job.definition.sources)

    async def _check_cycle(self, job: Job, statement: CreateStream, planned: Planned) -> None:
        """Reject a job that reads its own rows, directly or through others."""
        jobs = {each.queue: each for each in await self._change.all()}
        ways: list[tuple[str, tuple[str, ...]]] = [(queue, (queue,)) for queue in planned.source.queues]
        while ways:
            queue, way = ways.pop()
            if queue == job.queue:
                names = [each if self._caller.may(Right.QUEUE_READ, each) else None for each in way[-2::-1]]
                through = f" through {listed(names)}" if names else ""
                raise statement.query.source_span.error(
                    f"{job.full_name} would read its own rows{through}; read another stream"
                )
            if queue in jobs:
                ways += [(each.queue, (*way, each.queue)) for each in jobs[queue].definition.sources]


def _has_retention(job: Job) -> bool:
    """Whether the statement of a job sets the retention of its rows."""
    try:
        statement = parse_one(job.statement)
    except SqlError:
        return False
    options = statement.query.options if isinstance(statement, CreateStream) else ()
    return any(option.name == "retention" for option in options)


def _created(job: Job, *, changed: bool, warnings: Sequence[str] = ()) -> Result:
    return {
        "kind": "create_stream" if job.definition.writes is None else "create_sink",
        "name": job.full_name,
        "version": job.version,
        "changed": changed,
        "statement": job.statement,
        "warnings": list(warnings),
    }
