"""DESCRIBE: the columns of a stream or queue, and its condition."""

from __future__ import annotations

from typing import Any

from ...sql import Relation
from ...sql.canonical import shown
from ...sql.options import without_secrets
from ...sql.statements import Describe
from ...store.job import Condition
from ...store.job_change import JobChange
from ..http import Caller
from .catalogue import BrokerCatalogue, outside_of, read_by
from .condition import shown_condition, shown_retention, shown_run
from .table import Result, kind_of_rows, table, type_name

_COLUMNS = [("column", "string"), ("type", "string")]


async def described(change: JobChange, statement: Describe, caller: Caller) -> Result:
    """Return columns and types; with EXTENDED also the condition of the job. Raises SqlError."""
    found = await BrokerCatalogue(change, caller).visible(statement.name, statement.span)
    relation, job = found.relation, found.job
    details: dict[str, Any] = {
        "kind": {"stream": "job"}.get(relation.kind, relation.kind),
        "rows": kind_of_rows(relation.updating),
        "reads": list(found.queues),
    }
    more: dict[str, Any] = {}
    if found.source is not None:
        details |= {"connector": outside_of(found.source).connector}
        del details["reads"]
        more["statement"] = shown(found.source)
    if found.schema is not None:
        declared = await change.relations.find(relation.name)
        more["statement"] = declared.statement if declared is not None else ""
    if job is not None:
        details |= {"reads": read_by(job), "queue": job.queue}
        if (writes := job.definition.writes) is not None:
            del details["queue"]
            details |= {
                "kind": "sink",
                "connector": writes.connector,
                "writes": without_secrets(writes.options),
            }
        more |= {"statement": job.statement, "version": job.version}
        if statement.extended:
            condition = (await change.conditions([job]))[job.id]
            details |= {**shown_condition(job, condition), **_retention(condition)}
            details |= {"removed": condition.progress["removed"], "notice": job.definition.notice}
            if (run := shown_run(condition)) is not None:
                details["run"] = run
    return table("describe", _COLUMNS, _columns(relation), name=relation.name, details=details, **more)


def _columns(relation: Relation) -> list[list[str]]:
    if relation.columns is not None:
        return [[name, type_name(kind)] for name, kind in relation.columns.items()]
    return sorted([_path(path), type_name(kind)] for path, kind in relation.paths.items())


def _path(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))


def _retention(condition: Condition) -> dict[str, Any]:
    """The retention held for a job, including retention beyond its time."""
    retention = shown_retention(condition)
    if retention["heldSince"] is not None:
        held = f"held back for {retention['heldSeconds']:.0f} s"
        return {"retention": f"{held}: the job has not read all expired messages of its sources"}
    return {"retention": "not held"}
