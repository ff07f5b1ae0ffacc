"""Relations that statements can read: queues, schemas over queues, and the rows of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from ...sql import Plan, Relation, parse_one, thaw
from ...sql.errors import did_you_mean
from ...sql.payload import Field
from ...sql.planning.scope import REVISION
from ...sql.sampling import sampled_paths
from ...sql.source import Span
from ...sql.statements import CreateSink, CreateSource, DeclareStream
from ...sql.types import BIGINT, SqlType, from_name
from ...store.definitions import WINDOW_QUEUES, Outside, job_name
from ...store.job import Job
from ...store.job_change import JobChange
from ...store.relations import Declared
from ...store.streams import check_sources
from ..http import Caller, Right
from .names import split_name

SAMPLE = 1000
"""Number of newest messages sampled from a queue without a schema."""

_KAFKA_DELAY_US = 5_000_000  # clock and network skew between producers, for windows without event time
Paths = dict[tuple[str | int, ...], SqlType]


class Resolved(NamedTuple):
    """A relation with its source queues, and the job, schema or source behind it."""

    relation: Relation
    queues: tuple[str, ...]
    job: Job | None = None
    schema: DeclareStream | None = None
    source: CreateSource | None = None


class BrokerCatalogue:
    """The relations of the database, loaded by name before a statement is planned."""

    def __init__(self, change: JobChange, caller: Caller) -> None:
        self._change = change
        self._caller = caller
        self._known: dict[str, Resolved] = {}
        #: Samples of queues, taken once for all statements of a request.
        self._samples: dict[int, Paths] = {}

    def find(self, name: str) -> Relation | None:
        """Return a loaded relation."""
        found = self._known.get(name)
        return None if found is None else found.relation

    def names(self) -> Iterable[str]:
        """The loaded relations."""
        return list(self._known)

    async def load(self, name: str, span: Span, right: Right = Right.QUEUE_READ) -> Resolved:
        """Load a readable relation by name, if the caller has a right on it. Raises SqlError."""
        found = await self.visible(name, span, right)
        if found.job is not None and found.job.definition.writes is not None:
            raise span.error(f"{name} is a sink, which cannot be read; declare a SOURCE over its output")
        self._known[name] = found
        return found

    async def visible(self, name: str, span: Span, right: Right = Right.QUEUE_READ) -> Resolved:
        """Return a relation by name, if the caller has a right on its queues or source. Raises SqlError."""
        found = await self._look_up(name, span, right)
        if found is None:
            hint = did_you_mean(name, await self.all_names()) or "; SHOW STREAMS and SHOW QUEUES list them"
            raise span.error(f"there is no stream, source or queue {name}{hint}")
        return found

    async def _look_up(self, name: str, span: Span, right: Right) -> Resolved | None:
        """Look up a relation, if it exists and the caller has a right on it. Raises SqlError.

        The right is checked before anything else about the relation can fail.
        """

        def may(*names: str) -> bool:
            return all(self._caller.may(right, each) for each in names)

        job = await self._change.find(*split_name(name))
        if job is not None:
            if not may(job.full_name):
                return None
            return Resolved(await self._rows_of(job), (job.queue,), job=job)
        declared = await self._change.relations.find(own_name(name))
        if declared is not None and not may(*_read_as(declared)):
            return None
        if declared is not None and declared.kind == "source":
            source = parsed_source(declared)
            return Resolved(source_relation(source), (), source=source)
        if declared is not None:
            schema = parsed_schema(declared)
            await self.refuse_jobs(queues_of(schema), span)
            return Resolved(schema_relation(schema), queues_of(schema), schema=schema)
        if name.startswith(WINDOW_QUEUES):
            return None
        ids = await self._change.queue_ids([name, own_name(name)])
        queue = next(iter(ids), None)
        return None if queue is None or not may(queue) else await self._queue(queue, ids[queue], span)

    async def all_names(self) -> list[str]:
        """The names of all readable relations, for hints."""
        caller = self._caller
        declared = [
            each.name
            for each in await self._change.relations.all()
            if all(caller.may(Right.QUEUE_READ, name) for name in _read_as(each))
        ]
        queues = await self._change.queue_names()
        return [*declared, *(queue for queue in queues if caller.may(Right.QUEUE_READ, queue))]

    async def refuse_jobs(self, queues: Iterable[str], span: Span) -> None:
        """Reject a schema over the rows of a job, which has its own columns."""
        for queue in queues:
            if await self._change.find(*split_name(queue)) is not None:
                raise span.error(
                    f"the queue {queue} is the output queue of the job {queue}, whose columns are already"
                    f" known; use {queue} in FROM without declaring it"
                )

    async def messages(self, queues: Sequence[str]) -> Relation:
        """Combine queues into one relation, with types from a sample; raises Refused if there is none.

        Rows of a single job have the types of its columns.
        """
        ids = await self._change.queue_ids(queues)
        check_sources(queues, ids)
        payloads = [
            payload for id_ in ids.values() for payload in await self._change.newest_payloads(id_, SAMPLE)
        ]
        paths: Paths = await asyncio.to_thread(sampled_paths, payloads)
        found = Relation(", ".join(queues), "queue", None, paths)
        for name in queues:
            job = await self._change.find(*split_name(name))
            if job is not None:
                rows = job_relation(name, thaw(job.query), {})
                columns: Paths = {(column,): kind for column, kind in (rows.columns or {}).items()}
                alone = len(queues) == 1
                found = found._replace(
                    paths={**paths, **columns} if alone else paths,
                    updating=found.updating or rows.updating,
                    revisions=alone and rows.revisions,
                )
        return found

    async def _queue(self, name: str, id_: int, span: Span) -> Resolved:
        paths = await self._sample(id_)
        if paths is None:
            raise span.error(
                f"the queue {name} is empty, so its columns are unknown; declare them: "
                f"CREATE STREAM … (column type, …) WITH (queue = '{name}')"
            )
        return Resolved(Relation(name, "queue", None, paths), (name,))

    async def _rows_of(self, job: Job) -> Relation:
        plan = thaw(job.query)
        paths: Paths = {}
        if plan.rows.whole_payload:
            # From rows that the job passed on, else from its source.
            ids = [job.queue_id, *(source.queue_id for source in job.definition.sources)]
            samples = [await self._sample(queue_id) for queue_id in ids]
            paths = next((sample for sample in samples if sample is not None), {})
        return job_relation(job.full_name, plan, paths)

    async def _sample(self, queue_id: int) -> Paths | None:
        """Return the paths in the newest messages of a queue; None when it is empty."""
        if queue_id not in self._samples:
            payloads = await self._change.newest_payloads(queue_id, SAMPLE)
            if not payloads:
                return None
            self._samples[queue_id] = await asyncio.to_thread(sampled_paths, payloads)
        return self._samples[queue_id]


def own_name(name: str) -> str:
    """The stored name of a declaration: without the namespace `default`."""
    return job_name(*split_name(name))


def parsed_schema(declared: Declared) -> DeclareStream:
    """Parse the statement of a schema."""
    statement = parse_one(declared.statement)
    assert isinstance(statement, DeclareStream)
    return statement


def parsed_source(declared: Declared) -> CreateSource:
    """Parse the statement of a source."""
    statement = parse_one(declared.statement)
    assert isinstance(statement, CreateSource)
    return statement


def _read_as(declared: Declared) -> tuple[str, ...]:
    """The names that a caller needs the read right on."""
    return queues_of(parsed_schema(declared)) if declared.kind == "schema" else (declared.name,)


def outside_of(statement: CreateSource | CreateSink) -> Outside:
    """Return a source or sink in the form stored with a job."""
    options = {option.name: option.value for option in statement.options}
    return Outside(own_name(statement.name), options.pop("connector"), options)


def source_relation(source: CreateSource) -> Relation:
    """Return a source as a relation."""
    outside = outside_of(source)
    return Relation(
        outside.name,
        outside.connector,  # type: ignore[arg-type]
        {column.name: from_name(column.type) for column in source.columns},
        has_event_time=outside.connector == "kafka",
        delay_us=_KAFKA_DELAY_US if outside.connector == "kafka" else 0,
        key_in_one_partition=outside.options.get("key_in_one_partition") == "true",
        bounded=outside.options.get("mode") == "once",
    )


def queues_of(schema: DeclareStream) -> tuple[str, ...]:
    """The queues of a schema."""
    (option,) = schema.options
    names = option.value.split(",") if option.name == "queues" else [option.value]
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def read_by(job: Job) -> list[str]:
    """The names of a job's source queues, or of its source."""
    body = job.definition
    return [body.reads.name] if body.reads is not None else [source.queue for source in body.sources]


def schema_relation(schema: DeclareStream) -> Relation:
    """Return a schema as a relation."""
    columns = {column.name: from_name(column.type) for column in schema.columns}
    return Relation(own_name(schema.name), "schema", columns)


def job_relation(name: str, plan: Plan, paths: Paths) -> Relation:
    """Return a job's rows as a relation: columns, whether later rows replace earlier ones, and delay."""
    upstream = plan.relation
    final = plan.kind == "window" and plan.emission == "final"
    # A merged session is a first revision, too: revisions do not tell which rows are replaced.
    counts = final and plan.window is not None and plan.window.kind != "session"
    revisions = counts or (plan.kind == "stateless" and upstream.revisions)
    return Relation(
        name,
        "stream",
        None if plan.rows.whole_payload else plan.columns,
        paths,
        updating=plan.updating,
        revisions=revisions and not _hides_revisions(plan),
        has_event_time=True,
        delay_us=_delay(plan) if final else upstream.delay_us,
    )


def _hides_revisions(plan: Plan) -> bool:
    """Whether a column has the name of the revision, and another value."""
    own = [pl.col(REVISION), pl.col(Field((REVISION,), BIGINT).column)]  # the latter: selected upstream
    return any(
        column.name.lower() == REVISION and not any(column.value.value.meta.eq(each) for each in own)
        for column in plan.rows.columns
    )


def _delay(plan: Plan) -> int:
    """The delay of final rows: the grace period plus the idle timeout of an event clock."""
    spec = plan.window
    if spec is None or spec.kind == "count":
        return plan.relation.delay_us
    return spec.grace_us + (spec.idle if spec.clock == "event" else 0)
