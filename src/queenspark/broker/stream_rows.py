"""A definition with the output `rows`: the job of an equivalent CREATE OR REPLACE STREAM."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from ..formats.definition import StreamDefinition
from ..sql import Relation, SqlError
from ..sql.options import JOB, checked
from ..sql.statements import CreateStream, Item, Option, Select
from ..sql.tree import Call, Node, Path
from ..store.definitions import job_name
from .broker import Broker
from .errors import bad_request
from .http import Call as HttpCall
from .jobs import find_job
from .sql import BrokerCatalogue, split_name
from .statements import apply_statements
from .stream_columns import MESSAGE
from .stream_expressions import Expressions, check_expressions
from .stream_fields import Fields

_LEASE_MS = StreamDefinition("", "").window_lease_timeout_ms


async def define_rows(broker: Broker, call: HttpCall, start: str | None) -> dict[str, Any]:
    """Create or replace the job of a definition, as POST /api/v1/sql does; 400 names the field."""
    request: StreamDefinition = call.body
    check_expressions(request)
    source = _source(request)
    _check(request)
    fields = Fields()
    relation: Relation | None = None
    try:
        async with broker.store.jobs.reading() as reading:
            catalogue = BrokerCatalogue(reading, call.caller)
            relation = (await catalogue.load(source, fields.span("source_queue_names"))).relation
        statement = await asyncio.to_thread(_statement, request, source, relation, fields, start)
        (result,) = await apply_statements(broker, call, [statement])
    except SqlError as error:
        raise fields.refusal(error, relation) from error
    job = await find_job(broker, statement.name)
    return {
        "stream_id": str(job.id), "version": result["version"], "queue": job.queue,
        "statement": result["statement"], "warnings": result["warnings"],
    }  # fmt: skip


def _source(request: StreamDefinition) -> str:
    names = list(dict.fromkeys(request.source_queue_names))
    if len(names) > 1:
        raise bad_request(
            f"source_queue_names: {', '.join(names)} cannot be read together with output rows: declare a"
            f" stream over them, CREATE STREAM … (column type, …) WITH (queues = '{', '.join(names)}'), and"
            " name that stream here"
        )
    return names[0]


def _check(request: StreamDefinition) -> None:
    """Reject fields that have no meaning for rows."""
    full_name = job_name(request.namespace, request.name)
    if split_name(full_name) != (request.namespace, request.name):
        raise bad_request(
            f"name ({request.name}) must not contain a dot with output rows, which are in the queue"
            f" {full_name}; choose another name, or use its first part as the namespace"
        )
    if not request.ordered:
        raise bad_request(
            "ordered must be true with output rows: the rows of a key are in one partition of their queue"
        )
    if request.window_lease_timeout_ms != _LEASE_MS:
        raise bad_request(
            "window_lease_timeout_ms has no meaning with output rows: remove it, and set the leaseTime of the"
            f" queue {full_name} with /api/v1/configure"
        )
    if request.reset:
        raise bad_request(
            f"reset is not available with output rows: delete the job {full_name}, and define it again"
        )


def _statement(
    request: StreamDefinition, source: str, relation: Relation, fields: Fields, start: str | None
) -> CreateStream:
    """Build the statement of a definition. Raises SqlError."""
    given = Expressions(request, relation, fields)
    if given.kind != "ROWS":
        given.check_used()
    options = given.options()
    if request.window_retention_ms is not None:
        options.append(given.duration("retention", "window_retention_ms"))
    if start is not None:
        options.append(Option(name="start", value=start, span=fields.span("start")))
    keys = tuple(each.whole for each in given.key)
    if request.partitioned:
        keys = (Path(steps=("_partition",), span=fields.span("partitioned")),)
    query = Select(
        items=_items(given, keys, fields),
        source=source,
        where=None if given.where is None else given.where.whole,
        group_by=keys,
        window=given.window(),
        having=None if given.having is None else given.having.whole,
        emit=given.emit,
        emit_span=fields.span("emit"),
        options=checked(tuple(options), JOB, "a stream"),
        source_span=fields.span("source_queue_names"),
        span=fields.span("aggregates"),
    )
    query = msgspec.structs.replace(query, alias=_alias(query, relation))
    name = job_name(request.namespace, request.name)
    return CreateStream(name=name, query=query, replace=True, span=fields.span("name"))


def _alias(query: Select, relation: Relation) -> str | None:
    """An alias for the source, if a path into the payload begins with its name."""
    own = relation.name.rpartition(".")[2].lower()
    time = None if query.window is None else query.window.time
    selected = (item.expression for item in query.items if isinstance(item, Item))
    nodes = [
        node for node in (*selected, query.where, *query.group_by, time, query.having) if node is not None
    ]
    paths = [each for node in nodes for each in node.walk() if isinstance(each, Path) and len(each.steps) > 1]
    return MESSAGE if any(str(path.steps[0]).lower() == own for path in paths) else None


def _items(given: Expressions, keys: tuple[Node, ...], fields: Fields) -> tuple[Item, ...]:
    """The columns of a row: its key, computed columns, aggregates and window."""
    of_key = [given.column_of(each.own) for each in given.key] or [None] * len(keys)
    items = [
        Item(expression=node, name=column, span=node.start) for node, column in zip(keys, of_key, strict=True)
    ]
    if given.kind == "ROWS":
        # The last record of the window is the one that emits the row.
        items += [
            Item(expression=Call(name="LAST", arguments=(node,), span=node.start), name=name, span=node.start)
            for name, node in given.columns.items()
            if name not in of_key
        ]
    items += [
        Item(expression=each.whole, name=name, span=each.own.start) for name, each in given.aggregates.items()
    ]
    span = fields.span("aggregates")
    return (*items, *(Item(expression=Path(steps=(name,), span=span), span=span) for name in _WINDOW))


_WINDOW = ("window_start", "window_end")
