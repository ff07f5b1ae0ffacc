"""Runs statements in order, in one transaction."""

from __future__ import annotations

import asyncio

import msgspec

from ...sql import canonical, plan_insert
from ...sql.options import without_secrets
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
from ...store.job import Job
from ...store.job_change import JobChange
from ...store.push import Item
from ..broker import Broker
from ..http import Call, Right
from ..push import admit_items, check_count, check_items
from .catalogue import own_name, queues_of
from .creation import Creation
from .describe import described
from .explain import explained
from .names import no_such, split_name
from .planner import Planner
from .removal import Removal
from .rights import check_rights
from .show import Shows
from .sinks import check_columns, query_of, written_by
from .table import Result, plan_columns, table

READ_ONLY = (Show, Describe, Explain)
"""Statements without side effects."""


class Executor:
    """Runs statements within the transaction of one connection."""

    def __init__(self, broker: Broker, change: JobChange, call: Call) -> None:
        caller = call.caller
        self._broker = broker
        self._call = call
        self._change = change
        self._caller = caller
        self._shows = Shows(broker.store.queues, broker.store.counts, caller)
        self._appender = broker.appender
        self.planner = Planner(change, caller)
        self.creation = Creation(change, self.planner, broker.settings.external_jobs, caller)
        self._removal = Removal(change, caller)
        #: Rows of INSERT statements.
        self.items: list[Item] = []

    async def run(self, statement: Statement) -> Result:
        """Run one statement. Raises SqlError."""
        try:
            return await self._run(statement)
        except Refused as error:
            raise statement.span.error(str(error)) from error

    def check(self, statement: Statement) -> None:
        """Check that the caller may run a statement of this kind on this name."""
        check_rights(self._caller, statement)

    async def drop(self, job: Job, *, cascade: bool) -> list[str]:
        """Drop a job, with `cascade` also its readers; return all dropped names. Raises Refused."""
        return await self._removal.drop(job, cascade=cascade)

    async def control(self, job: Job, action: str) -> bool:
        """PAUSE, RESUME or RESTART a job; return whether anything changed."""
        actions = {
            "PAUSE": self._change.pause, "RESUME": self._change.resume, "RESTART": self._change.restart,
        }  # fmt: skip
        return await actions[action](job)

    async def _run(self, statement: Statement) -> Result:
        self.check(statement)
        match statement:
            case CreateStream():
                return await self.creation.create(statement)
            case DeclareStream():
                return await self.creation.declare(statement)
            case CreateSource():
                return await self.creation.create_source(statement)
            case CreateSink():
                return await self.creation.create_sink(statement)
            case Insert():
                return await self._insert(statement)
            case Drop():
                return await self._removal.run(statement)
            case ControlJob():
                return await self._control(statement)
            case Show():
                return await self._shows.show(self._change, statement)
            case Describe():
                return await described(self._change, statement, self._caller)
            case Explain():
                return await self._explain(statement)
            case Select():
                planned = await self.planner.plan(statement)
                return table("select", plan_columns(planned.plan), (), statement=canonical(statement))

    async def _insert(self, statement: Insert) -> Result:
        catalogue = self.planner.catalogue
        source = await catalogue.load(statement.name, statement.span, Right.QUEUE_PUSH)
        if source.source is not None:
            raise statement.span.error(
                f"{statement.name} is an external source; INSERT needs a stream over a queue"
            )
        _, payloads = await asyncio.to_thread(plan_insert, statement, catalogue)
        if len(source.queues) > 1:
            raise statement.span.error(
                f"{statement.name} reads several queues: {', '.join(source.queues)}; "
                "insert into a stream over one of them"
            )
        items = [
            Item(source.queues[0], "Default", None, None, msgspec.Raw(text.encode())) for text in payloads
        ]
        self.items += items
        check_count(self._broker, len(self.items))
        # Before the append, which stores the producer.
        check_items(self._broker, items, sum(len(bytes(item.payload)) for item in items))
        admit_items(self._call, items)
        await self._appender.check(items)
        await self._appender.append_within(self._change.connection, items)
        return {"kind": "insert", "name": own_name(statement.name), "count": len(items), "changed": True}

    async def _control(self, statement: ControlJob) -> Result:
        job = await self._change.find(*split_name(statement.name))
        if job is None:
            raise await no_such(self._change, self._caller, "job", own_name(statement.name), statement.span)
        changed = await self.control(job, statement.action)
        kind = f"{statement.action.lower()}_job"
        return {"kind": kind, "name": job.full_name, "version": job.version, "changed": changed}

    async def _explain(self, statement: Explain) -> Result:
        inner = statement.statement
        if isinstance(inner, CreateSource):
            given = without_secrets({option.name: option.value for option in inner.options})
            options = ", ".join(f"{name} = {value}" for name, value in given.items())
            return table("explain", [("plan", "string")], [[f"declares a source, {options}; starts no job"]])
        if isinstance(inner, DeclareStream):
            queues = ", ".join(queues_of(inner))
            return table(
                "explain", [("plan", "string")], [[f"declares columns over {queues}; starts no job"]]
            )
        if isinstance(inner, CreateSink):
            query = await query_of(inner, self.planner.catalogue)
            planned, output = await self.planner.plan(query), written_by(inner)
            check_columns(inner, planned.plan)
            lines = explained(planned, query, own_name(inner.name), output)
        else:
            query = inner.query if isinstance(inner, CreateStream) else inner
            planned = await self.planner.plan(inner)
            lines = explained(
                planned, query, own_name(inner.name) if isinstance(inner, CreateStream) else None
            )
        return table("explain", [("plan", "string")], [[line] for line in lines])
