"""Runs statements, one after the other, in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...sql import Plan, Relation, SqlError, canonical, freeze, parse_one, plan_insert, plan_stream, thaw
from ...sql.duration import short_duration
from ...sql.errors import did_you_mean
from ...sql.source import Span
from ...sql.statements import (
    ControlJob,
    CreateSink,
    CreateSource,
    CreateStream,
    DeclareStream,
    Describe,
    Drop,
    Explain,
    Insert,
    Select,
    Show,
    Statement,
)
from ...store.errors import Refused
from ...store.jobs import Job, JobChange, WantedJob
from ...store.push import Item
from ..broker import Broker
from .catalogue import BrokerCatalogue, Resolved, job_relation, own_name, parsed_schema, queues_of
from .describe import described
from .explain import explained
from .names import check_new_name, split_name
from .replacement import how_it_changes
from .show import Shows
from .table import Result, plan_columns, table

READ_ONLY = (Show, Describe, Explain)
"""Statements that change nothing."""


class Planned(msgspec.Struct, frozen=True):
    """A query as it is kept, its plan, and the relation that it reads."""

    frozen: dict[str, Any]
    plan: Plan
    source: Resolved


class Executor:
    """Runs statements on one connection. Rows of INSERT are in `items` and have to be pushed afterwards."""

    def __init__(self, broker: Broker, change: JobChange) -> None:
        self._change = change
        self._shows = Shows(broker.store.queues, broker.store.counts)
        self._check = broker.appender.check
        self.items: list[Item] = []

    async def run(self, statement: Statement) -> Result:
        """Run one statement. Raises SqlError."""
        try:
            return await self._run(statement)
        except Refused as error:
            raise statement.span.error(str(error)) from error

    async def _run(self, statement: Statement) -> Result:
        match statement:
            case CreateStream():
                return await self._create(statement)
            case DeclareStream():
                return await self._declare(statement)
            case CreateSource() | CreateSink():
                raise _not_yet(statement)
            case Insert():
                return await self._insert(statement)
            case Drop():
                return await self._drop(statement)
            case ControlJob():
                return await self._control(statement)
            case Show():
                return await self._shows.show(self._change, statement)
            case Describe():
                return await described(self._change, statement)
            case Explain():
                return await self._explain(statement)
            case Select():
                planned = await self.plan(statement)
                return table("select", plan_columns(planned.plan), (), statement=canonical(statement))

    # Queries

    async def plan(self, statement: CreateStream | Select) -> Planned:
        """Plan a query over what there is now. Raises SqlError."""
        query = statement.query if isinstance(statement, CreateStream) else statement
        catalogue = BrokerCatalogue(self._change)
        source = await catalogue.load(query.source, query.source_span)
        # Planning takes some milliseconds, in which others shall be served.
        frozen = await asyncio.to_thread(freeze, statement, catalogue)
        return Planned(frozen, await asyncio.to_thread(thaw, frozen), source)

    async def wanted(self, name: str, query: Select, planned: Planned) -> WantedJob:
        """The job that a query asks for; queues of its schema that are not there are made."""
        if planned.source.schema is not None:
            await self._change.ensure_queues(planned.source.queues)
        namespace, own = split_name(name)
        plan = planned.plan
        retention_us = short_duration(plan.options.get("retention", "0s")) or 0
        return WantedJob(
            namespace=namespace,
            name=own,
            query=planned.frozen,
            spec={} if plan.window is None else msgspec.json.decode(plan.window.to_json()),
            queues=planned.source.queues,
            start=_start(query),
            retention_seconds=-(-retention_us // 1_000_000),
        )

    # CREATE

    async def _create(self, statement: CreateStream) -> Result:
        check_new_name(statement.name, statement.span)
        if await self._change.relations.find(own_name(statement.name)) is not None:
            raise statement.span.error(
                f"{statement.name} is a stream over a queue, without a job; "
                "DROP it first, or choose another name"
            )
        job = await self._change.find(*split_name(statement.name))
        if job is not None and not statement.replace:
            raise statement.span.error(
                f"there is a job {job.full_name} already; use CREATE OR REPLACE STREAM, or DROP it first"
            )
        statement = msgspec.structs.replace(statement, name=own_name(statement.name), replace=False)
        if job is not None and canonical(statement) == job.statement and not await self._is_cut_off(job):
            return _created(job, changed=False)
        planned = await self.plan(statement)
        wanted = await self.wanted(statement.name, statement.query, planned)
        if job is None:
            made = await self._change.create(wanted)
        else:
            await self._check_cycle(job, statement, planned)
            await self._check_readers(job, statement, planned)
            made = await self._change.replace(job, wanted, await self._how(job, statement, planned))
        return _created(made, changed=True, warnings=planned.plan.warnings)

    async def _is_cut_off(self, job: Job) -> bool:
        """Whether a queue that a job reads was deleted."""
        names = [source.queue for source in job.definition.sources]
        ids = await self._change.queue_ids(names)
        return any(ids.get(source.queue) != source.queue_id for source in job.definition.sources)

    async def _how(self, job: Job, statement: CreateStream, planned: Planned) -> Any:
        old = parse_one(job.statement)
        assert isinstance(old, CreateStream)
        names = tuple(source.queue for source in job.definition.sources)
        if names != planned.source.queues or await self._is_cut_off(job):
            return "by position"
        return how_it_changes(old, statement, job.query, planned.frozen)

    async def _check_cycle(self, job: Job, statement: CreateStream, planned: Planned) -> None:
        """Refuse a job that reads its own rows, directly or through others."""
        jobs = {each.queue: each for each in await self._change.all()}
        ways: list[tuple[str, tuple[str, ...]]] = [(queue, (queue,)) for queue in planned.source.queues]
        while ways:
            queue, way = ways.pop()
            if queue == job.queue:
                through = " through " + ", ".join(way[-2::-1]) if len(way) > 1 else ""
                raise statement.query.source_span.error(
                    f"{job.full_name} would read its own rows{through}; read another stream"
                )
            if queue in jobs:
                ways += [(each.queue, (*way, each.queue)) for each in jobs[queue].definition.sources]

    async def _check_readers(self, job: Job, statement: CreateStream, planned: Planned) -> None:
        """Refuse a change after which the jobs that read this one would read something else."""
        before = job_relation(job.full_name, thaw(job.query), {})
        after = job_relation(job.full_name, planned.plan, {})
        if before._replace(delay_us=0) == after._replace(delay_us=0):
            return
        for reader in await self._change.readers(job.queue_id):
            if reader.is_stream or reader.expires_at is not None:
                continue
            reason = _change_for(reader, after)
            if reason is not None:
                raise statement.span.error(
                    f"the job {reader.full_name} reads {job.full_name}, and {reason}; "
                    f"drop {reader.full_name} first, or choose another name for this stream"
                )

    async def _declare(self, statement: DeclareStream) -> Result:
        check_new_name(statement.name, statement.span)
        name = own_name(statement.name)
        if await self._change.find(*split_name(name)) is not None:
            raise statement.span.error(
                f"there is a job {name} already; choose another name, or DROP it first"
            )
        declared = await self._change.relations.find(name)
        if declared is not None and not statement.replace:
            raise statement.span.error(
                f"there is a stream {name} already; use CREATE OR REPLACE STREAM, or DROP it first"
            )
        statement = msgspec.structs.replace(statement, name=name, replace=False)
        text = canonical(statement)
        changed = declared is None or declared.statement != text
        queues = queues_of(statement)
        for queue in queues:
            check_new_name(queue, statement.options[0].span)
        await BrokerCatalogue(self._change).refuse_jobs(queues, statement.options[0].span)
        if changed:
            await self._change.ensure_queues(queues)
            await self._change.relations.set(name, "schema", text)
        return {"kind": "declare_stream", "name": name, "changed": changed, "statement": text}

    # Rows, and the end of things

    async def _insert(self, statement: Insert) -> Result:
        catalogue = BrokerCatalogue(self._change)
        source = await catalogue.load(statement.name, statement.span)
        _, payloads = await asyncio.to_thread(plan_insert, statement, catalogue)
        if len(source.queues) > 1:
            raise statement.span.error(
                f"{statement.name} is over several queues: {', '.join(source.queues)}; "
                "insert into a stream over one of them"
            )
        items = [
            Item(source.queues[0], "Default", None, None, msgspec.Raw(text.encode())) for text in payloads
        ]
        await self._check(items)
        self.items += items
        return {"kind": "insert", "name": own_name(statement.name), "count": len(items), "changed": True}

    async def _drop(self, statement: Drop) -> Result:
        name = own_name(statement.name)
        done = {"kind": f"drop_{statement.object.lower()}", "name": name}
        job = await self._change.find(*split_name(name)) if statement.object == "STREAM" else None
        declared = await self._change.relations.find(name) if statement.object == "STREAM" else None
        if job is not None:
            gone = await self.drop(job, cascade=statement.cascade)
        elif declared is not None:
            gone = await self._drop_schema(parsed_schema(declared), cascade=statement.cascade)
        elif statement.if_exists:
            return {**done, "changed": False, "dropped": []}
        else:
            raise await self._no_such(statement.object.lower(), name, statement.span)
        return {**done, "changed": True, "dropped": gone}

    async def drop(self, job: Job, *, cascade: bool) -> list[str]:
        """Drop a job, with `cascade` also those that read it; the names of all. Raises Refused."""
        readers = await self._change.readers(job.queue_id)
        lasting = [reader for reader in readers if reader.expires_at is None]
        groups = await self._change.groups(job)
        if not cascade and (lasting or groups):
            users = [f"{_what(reader)} {reader.full_name}" for reader in lasting]
            users += [f"the consumer group {group}" for group in groups]
            raise Refused(f"{job.full_name} is used by {', '.join(users)}; drop these first, or use CASCADE")
        gone = []
        for reader in readers:
            gone += await self.drop(reader, cascade=True)
        await self._change.drop(job)
        return [*gone, job.full_name] if job.expires_at is None else gone

    async def _drop_schema(self, schema: DeclareStream, *, cascade: bool) -> list[str]:
        readers = [
            job
            for job in await self._change.all(temporary=True)
            if job.query["relation"]["kind"] == "schema" and job.query["relation"]["name"] == schema.name
        ]
        lasting = [reader for reader in readers if reader.expires_at is None]
        if lasting and not cascade:
            names = ", ".join(f"the job {reader.full_name}" for reader in lasting)
            raise Refused(f"{schema.name} is used by {names}; drop these first, or use CASCADE")
        gone: list[str] = []
        for reader in lasting:
            if await self._change.find(reader.namespace, reader.name) is not None:
                gone += await self.drop(reader, cascade=True)
        await self._change.relations.delete(schema.name)
        return [*gone, schema.name]

    async def _control(self, statement: ControlJob) -> Result:
        job = await self._change.find(*split_name(statement.name))
        if job is None:
            raise await self._no_such("job", own_name(statement.name), statement.span)
        changed = await self.control(job, statement.action)
        kind = f"{statement.action.lower()}_job"
        return {"kind": kind, "name": job.full_name, "version": job.version, "changed": changed}

    async def control(self, job: Job, action: str) -> bool:
        """PAUSE, RESUME or RESTART a job; whether that changes anything."""
        actions = {
            "PAUSE": self._change.pause, "RESUME": self._change.resume, "RESTART": self._change.restart,
        }  # fmt: skip
        return await actions[action](job)

    async def _explain(self, statement: Explain) -> Result:
        inner = statement.statement
        if isinstance(inner, (CreateSource, CreateSink)):
            raise _not_yet(inner)
        if isinstance(inner, DeclareStream):
            queues = ", ".join(queues_of(inner))
            return table("explain", [("plan", "string")], [[f"declares columns over {queues}; nothing runs"]])
        query = inner.query if isinstance(inner, CreateStream) else inner
        planned = await self.plan(inner)
        name = own_name(inner.name) if isinstance(inner, CreateStream) else None
        _start(query)
        lines = explained(planned.plan, query, planned.source.queues, name)
        return table("explain", [("plan", "string")], [[line] for line in lines])

    async def _no_such(self, what: str, name: str, span: Span) -> SqlError:
        names = [job.full_name for job in await self._change.all()]
        if what == "stream":
            names += [declared.name for declared in await self._change.relations.all()]
        hint = did_you_mean(name, names)
        if not hint and what == "stream" and await self._change.queue_ids([name]):
            hint = "; it is a queue, which DELETE /api/v1/resources/queues removes"
        return span.error(f"there is no {what} {name}{hint}")


def _created(job: Job, *, changed: bool, warnings: Sequence[str] = ()) -> Result:
    return {
        "kind": "create_stream",
        "name": job.full_name,
        "version": job.version,
        "changed": changed,
        "statement": job.statement,
        "warnings": list(warnings),
    }


def _change_for(reader: Job, after: Relation) -> str | None:
    """Why a job that reads another one cannot go on after that one's change; None when it can."""
    statement = parse_one(reader.statement)
    assert isinstance(statement, CreateStream)
    before = thaw(reader.query)
    try:
        again = plan_stream(statement, _Only(after))
    except SqlError as error:
        return f"would fail: {error.message}"
    if again.records.fields != before.records.fields:
        return "its columns would have other types"
    return None


class _Only:
    """A catalogue of one relation."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def find(self, name: str) -> Relation | None:
        """The relation, by its name."""
        return self._relation if own_name(name) == self._relation.name else None

    def names(self) -> list[str]:
        """Its name."""
        return [self._relation.name]


def _what(reader: Job) -> str:
    return "the stream of windows" if reader.is_stream else "the job"


def _start(query: Select) -> str:
    """Where a query begins: earliest, latest or a time in UTC."""
    for option in query.options:
        if option.name == "start" and option.value not in ("earliest", "latest"):
            try:
                time = datetime.fromisoformat(option.value)
                return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
            except (ValueError, OverflowError) as error:
                raise option.span.error(f"start is {option.value!r}, which is no time: {error}") from error
        if option.name == "start":
            return option.value
    return "earliest"


def _not_yet(statement: CreateSource | CreateSink) -> SqlError:
    what = "CREATE SOURCE" if isinstance(statement, CreateSource) else "CREATE SINK"
    return statement.span.error(f"{what} is not available yet; jobs read queues and write to queues")
