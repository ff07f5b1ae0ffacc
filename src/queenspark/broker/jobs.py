"""GET /api/v1/jobs…: list, inspect, pause, resume, restart and delete jobs."""

from __future__ import annotations

from typing import Any

import msgspec

from ..store.errors import Refused
from ..store.job import Job
from .broker import Broker
from .errors import ApiError, not_found
from .http import Call, Response, Right, Route, json
from .paging import OffsetQuery, PageQuery, page_of, paged
from .responses.jobs import JobDeadList, JobDeleted, JobDetail, JobList
from .responses.streams import LateRecords
from .sql import Executor, split_name
from .sql.catalogue import read_by
from .sql.condition import shown_job, shown_retention, shown_run
from .sql.planner import stored_plan
from .sql.table import kind_of_rows, plan_columns
from .stream_resources import shown_dead, shown_late


class JobsQuery(PageQuery):
    """Filters on the jobs."""

    namespace: str | None = None


class DropQuery(msgspec.Struct):
    """Whether to delete the readers of the job, too."""

    cascade: bool = False


async def find_job(broker: Broker, name: str) -> Job:
    """Return a job by name, or raise 404."""
    async with broker.store.jobs.reading() as reading:
        job = await reading.find(*split_name(name))
    if job is None:
        raise not_found(f"job {name} does not exist")
    return job


async def list_jobs(broker: Broker, call: Call) -> Response:
    """List the jobs, optionally of one namespace."""
    query: JobsQuery = call.query
    jobs = broker.store.jobs
    found, total = await jobs.page(
        page_of(query, "createdAt", "updatedAt", visible=call.visible()), query.namespace
    )
    conditions = await jobs.conditions(found)
    shown = [shown_job(job, conditions[job.id]) for job in found if job.id in conditions]
    return json(paged("jobs", shown, total, query))


async def get_job(broker: Broker, call: Call) -> Response:
    """One job."""
    return json(await _detail(broker, call.path["name"]))


async def _detail(broker: Broker, name: str) -> dict[str, Any]:
    job = await find_job(broker, name)
    condition = (await broker.store.jobs.conditions([job])).get(job.id)
    if condition is None:
        raise not_found(f"job {name} does not exist")
    plan = stored_plan(job)  # None: the job has failed and shows why
    columns, is_updating = ([], True) if plan is None else (plan_columns(plan), plan.updating)
    return {
        **shown_job(job, condition),
        "columns": [{"name": column, "type": kind} for column, kind in columns],
        "rows": kind_of_rows(is_updating),
        "notice": job.definition.notice,
        "sources": read_by(job),
        "retention": shown_retention(condition),
        "run": shown_run(condition),
    }


def _control(action: str) -> Any:
    async def control(broker: Broker, call: Call) -> Response:
        name = call.path["name"]
        async with broker.store.jobs.change() as change:
            job = await change.find(*split_name(name))
            if job is None:
                raise not_found(f"job {name} does not exist")
            await Executor(broker, change, call).control(job, action)
        return json(await _detail(broker, name))

    return control


async def delete(broker: Broker, call: Call) -> Response:
    """Delete a job with its rows; 409 while it has readers."""
    name = call.path["name"]
    try:
        async with broker.store.jobs.change() as change:
            job = await change.find(*split_name(name))
            if job is None:
                raise not_found(f"job {name} does not exist")
            executor = Executor(broker, change, call)
            dropped = await executor.drop(job, cascade=call.query.cascade)
    except Refused as error:
        raise ApiError(409, str(error).replace("use CASCADE", "pass cascade=true")) from error
    for queue in change.changed_queues:
        broker.bus.forget(queue)
    return json({"deleted": True, "dropped": dropped})


async def dead(broker: Broker, call: Call) -> Response:
    """List failed records and rows with the reason, newest first."""
    job = await find_job(broker, call.path["name"])
    rows = await broker.store.jobs.dead(job, call.query.limit, call.query.offset)
    return json({"dead": [shown_dead(row) for row in rows]})


async def late(broker: Broker, call: Call) -> Response:
    """List records that arrived after their window was sealed, newest first."""
    job = await find_job(broker, call.path["name"])
    rows = await broker.store.jobs.late(job, call.query.limit, call.query.offset)
    return json({"late": [shown_late(row) for row in rows]})


JOBS = "/api/v1/jobs"

ROUTES = [
    Route("GET", JOBS, list_jobs, "List jobs", Right.JOB_READ, {200: JobList}, query=JobsQuery),
    Route("GET", f"{JOBS}/:name", get_job, "Get a job", Right.JOB_READ, {200: JobDetail}),
    *(
        Route(
            "POST",
            f"{JOBS}/:name/{action.lower()}",
            _control(action),
            f"{action.capitalize()} a job",
            Right.JOB_ADMIN,
            {200: JobDetail},
        )
        for action in ("PAUSE", "RESUME", "RESTART")
    ),
    Route(
        "GET",
        f"{JOBS}/:name/dead",
        dead,
        "List failed records and rows",
        Right.JOB_READ,
        {200: JobDeadList},
        query=OffsetQuery,
    ),
    Route(
        "GET",
        f"{JOBS}/:name/late",
        late,
        "List late records of a job",
        Right.JOB_READ,
        {200: LateRecords},
        query=OffsetQuery,
    ),
    Route(
        "DELETE",
        f"{JOBS}/:name",
        delete,
        "Delete a job",
        Right.JOB_ADMIN,
        {200: JobDeleted},
        query=DropQuery,
    ),
]
