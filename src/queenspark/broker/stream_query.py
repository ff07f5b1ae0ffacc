"""The computation of a stream of windows: a query built from the expressions of its definition."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from ..formats.definition import StreamDefinition
from ..formats.window_message import GLOBAL
from ..sql import Relation, SqlError, freeze, thaw
from ..sql.expression_text import expression_text
from ..sql.options import JOB, checked
from ..sql.planning.catalogue import OneRelation
from ..sql.statements import Item, Select
from ..sql.tree import Literal, Node, Path
from .broker import Broker
from .http import Caller
from .sql.catalogue import BrokerCatalogue
from .stream_columns import MESSAGE
from .stream_expressions import Expressions, check_expressions
from .stream_fields import Fields


class Computed(NamedTuple):
    """A stored query, and its source expressions in canonical form."""

    query: dict[str, Any]
    columns: dict[str, str]
    key: tuple[str, ...]
    where: str | None
    aggregates: dict[str, str]
    having: str | None


async def computed(broker: Broker, request: StreamDefinition, caller: Caller) -> Computed:
    """Plan a definition against its current queues; raise 400 with the field's name."""
    check_expressions(request)
    queues = list(dict.fromkeys(request.source_queue_names))
    async with broker.store.jobs.reading() as reading:
        relation = await BrokerCatalogue(reading, caller).messages(queues)
    fields = Fields()
    try:
        # Planning takes milliseconds; keep the event loop free.
        return await asyncio.to_thread(_planned, request, relation, fields)
    except SqlError as error:
        raise fields.refusal(error, relation) from error


def _planned(request: StreamDefinition, relation: Relation, fields: Fields) -> Computed:
    given = Expressions(request, relation, fields)
    given.check_used()
    items = tuple(
        Item(expression=each.whole, name=name, span=each.own.span) for name, each in given.aggregates.items()
    )
    query = Select(
        # Columns with an underscore are not aggregates of the window.
        items=items or (Item(expression=Path(steps=("_count",)), name="_count"),),
        source="messages",
        alias=MESSAGE,
        where=None if given.where is None else given.where.whole,
        group_by=tuple(each.whole for each in given.key) or (_whole_key(request),),
        window=given.window(),
        having=None if given.having is None else given.having.whole,
        emit=given.emit,
        emit_span=fields.span("emit"),
        options=checked(tuple(given.options()), JOB, "a stream"),
        source_span=fields.span("source_queue_names"),
        span=fields.span("aggregates"),
    )
    frozen = freeze(query, OneRelation(relation), "windows")
    thaw(frozen)
    return Computed(
        frozen,
        {name: expression_text(node) for name, node in given.columns.items()},
        tuple(expression_text(each.own) for each in given.key),
        None if given.where is None else expression_text(given.where.own),
        {name: expression_text(each.own) for name, each in given.aggregates.items()},
        None if given.having is None else expression_text(given.having.own),
    )


def _whole_key(request: StreamDefinition) -> Node:
    """The key of streams without key expressions: the partition, or a global one."""
    return Path(steps=("_partition",)) if request.partitioned else Literal(kind="string", text=GLOBAL)
