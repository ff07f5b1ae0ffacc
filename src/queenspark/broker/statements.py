"""POST /api/v1/sql: statements, applied atomically; a single SELECT streams its rows."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from ..retry import repeat
from ..sql import parse
from ..sql.statements import Insert, Select, Statement
from ..store.errors import ChangedMeanwhile
from .broker import Broker
from .errors import bad_request
from .http import Call, Lines, Response, Right, Route, json
from .responses.jobs import SqlResponse
from .sql import Executor
from .sql.executor import READ_ONLY
from .sql.rows import LEASE_SECONDS, rows_of
from .sql.table import Result

_MOST_STATEMENTS = 1000
_PAUSES = (0.0,) * 4  # retries when a queue is reconfigured during an insert


class SqlRequest(msgspec.Struct, rename="camel"):
    """Statements separated by semicolons. `timeout` ends a SELECT after this many milliseconds."""

    sql: str
    dry_run: bool = False
    timeout: Annotated[float, Meta(ge=0)] | None = None


async def run(broker: Broker, call: Call) -> Response | Lines:
    """Run statements."""
    request: SqlRequest = call.body
    statements = await asyncio.to_thread(parse, request.sql)
    if not statements:
        raise bad_request("sql is empty: send at least one statement")
    if len(statements) > _MOST_STATEMENTS:
        raise bad_request(
            f"sql has {len(statements)} statements; the limit is {_MOST_STATEMENTS}: send several requests"
        )
    alone = len(statements) == 1
    for statement in statements:
        if isinstance(statement, Select) and not alone:
            raise statement.span.error(
                "a SELECT must be the only statement of its request; send it separately"
            )
    first = statements[0]
    if isinstance(first, Select) and not request.dry_run:
        return await _select(broker, call, first, request.timeout)
    results = await apply_statements(broker, call, statements, dry_run=request.dry_run)
    return json({"results": results})


async def apply_statements(
    broker: Broker, call: Call, statements: list[Statement], *, dry_run: bool = False
) -> list[Result]:
    """Apply all statements, or none; return their results. Raises SqlError."""
    once = partial(_results, broker, call, statements, dry_run=dry_run)
    return await repeat(once, (ChangedMeanwhile,), _PAUSES)


async def _results(broker: Broker, call: Call, statements: list[Statement], *, dry_run: bool) -> list[Result]:
    jobs = broker.store.jobs
    only_reads = all(isinstance(statement, READ_ONLY) for statement in statements)
    async with jobs.reading() if only_reads else jobs.change(dry_run=dry_run) as change:
        executor = Executor(broker, change, call)
        results = [await executor.run(statement) for statement in statements]
    if not (only_reads or dry_run):
        call.acted_on = acts(statements)
    if not dry_run:
        for queue in change.changed_queues:
            broker.bus.forget(queue)
        if executor.items:
            await broker.appender.wake({item.queue for item in executor.items})
    return results


def acts(statements: list[Statement]) -> str | None:
    """The statements with side effects, for the audit log: without their text, which may contain secrets."""
    changing = [each for each in statements if not isinstance(each, (*READ_ONLY, Insert))]
    names = [f"{type(each).__name__} {getattr(each, 'name', '')}".strip() for each in changing]
    return ", ".join(names) or None


async def _select(broker: Broker, call: Call, statement: Select, timeout_ms: float | None) -> Lines:
    async with broker.store.jobs.change() as change:
        executor = Executor(broker, change, call)
        executor.check(statement)
        planned = await executor.planner.plan(statement)
        wanted = await executor.planner.wanted("select", statement, planned)
        await executor.creation.check_alone(wanted, statement.span)
        job = await change.create_temporary(wanted, LEASE_SECONDS)
    seconds = None if timeout_ms is None else timeout_ms / 1000
    rows = rows_of(broker, job, planned.plan, statement.limit, seconds, call.watch())
    return Lines(rows, broker.pipeline_header())


ROUTES = [
    Route(
        "POST",
        "/api/v1/sql",
        run,
        "Run SQL statements",
        Right.SQL,
        {200: SqlResponse},
        body=SqlRequest,
        messages={"": "sql is required", "sql": "sql is required: the statements as a string"},
        may_send_lines=True,
    )
]
