"""Query planning against the current database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...sql import Plan, SqlError, freeze, thaw
from ...sql.duration import short_duration
from ...sql.statements import CreateStream, Select
from ...store.job import Job, WantedJob
from ...store.job_change import JobChange
from ...windows import SpecError
from ..http import Caller
from .catalogue import BrokerCatalogue, Resolved, outside_of
from .names import split_name


class Planned(msgspec.Struct, frozen=True):
    """A query in its stored form, its plan, and its source relation."""

    frozen: dict[str, Any]
    plan: Plan
    source: Resolved


class Planner:
    """Plans the queries of a request."""

    def __init__(self, change: JobChange, caller: Caller) -> None:
        self._change = change
        self.catalogue = BrokerCatalogue(change, caller)

    async def plan(self, statement: CreateStream | Select) -> Planned:
        """Plan a query against the current catalogue. Raises SqlError."""
        query = statement.query if isinstance(statement, CreateStream) else statement
        if isinstance(statement, Select):
            _check_retention(query)
        start_of(query)
        source = await self.catalogue.load(query.source, query.source_span)
        # Planning takes milliseconds; keep the event loop free.
        frozen = await asyncio.to_thread(freeze, statement, self.catalogue)
        return Planned(frozen, await asyncio.to_thread(thaw, frozen), source)

    async def wanted(self, name: str, query: Select, planned: Planned) -> WantedJob:
        """Return the job for a query; missing queues of its schema are created."""
        if planned.source.schema is not None:
            await self._change.ensure_queues(planned.source.queues)
        namespace, own = split_name(name)
        plan = planned.plan
        return WantedJob(
            namespace=namespace,
            name=own,
            query=planned.frozen,
            spec={} if plan.window is None else msgspec.json.decode(plan.window.to_json()),
            queues=planned.source.queues,
            start=job_start(query, planned.source),
            retention_seconds=retention_of(plan),
            reads=None if planned.source.source is None else outside_of(planned.source.source),
        )


def stored_plan(job: Job) -> Plan | None:
    """Return the plan of a job; None if it cannot be planned: a newer release may have created it."""
    try:
        return thaw(job.query)
    except (SqlError, SpecError, msgspec.MsgspecError):
        return None


def _check_retention(query: Select) -> None:
    """Reject a retention of rows that are printed, or written to a sink. Raises SqlError."""
    for option in query.options:
        if option.name == "retention":
            raise option.span.error("retention does not apply to this query: its rows are in no queue")


def retention_of(plan: Plan) -> int | None:
    """The retention option of a query, in whole seconds."""
    text = plan.options.get("retention")
    return None if text is None else -(-(short_duration(text) or 0) // 1_000_000)


def job_start(query: Select, source: Resolved) -> str:
    """Where a job starts: from its query, else from its source."""
    given = (*query.options, *(source.source.options if source.source is not None else ()))
    return start_of(msgspec.structs.replace(query, options=given))


def start_of(query: Select) -> str:
    """Where a query starts: earliest, latest or a time in UTC. Raises SqlError."""
    for option in query.options:
        if option.name == "start" and option.value not in ("earliest", "latest"):
            try:
                time = datetime.fromisoformat(option.value)
                return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
            except (ValueError, OverflowError) as error:
                raise option.span.error(f"start is {option.value!r}, which is not a time: {error}") from error
        if option.name == "start":
            return option.value
    return "earliest"
