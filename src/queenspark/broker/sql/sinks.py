"""CREATE SINK: its query, and its validation."""

from __future__ import annotations

import asyncio

import msgspec

from ...connectors.checks import Unreachable, check_sink
from ...sql import Plan
from ...sql.errors import did_you_mean
from ...sql.options import OF_STREAM, without_password
from ...sql.parser import parse_expression
from ...sql.source import Span
from ...sql.statements import CreateSink, Item, Select, Star
from ...store.definitions import Outside
from ...store.job import Job
from ...store.job_change import JobChange
from .catalogue import BrokerCatalogue, outside_of

#: Columns that the option `metadata` can add, with their sources.
METADATA = {
    "_queue": "_queue",
    "_partition": "_partition",
    "_transaction_id": "_transaction_id",
    "_created_at": "_created_at",
    "_event_time": "_event_time",
    "_version": "TRY_CAST(_headers._version AS BIGINT)",
    "_revision": "TRY_CAST(_headers._revision AS BIGINT)",
    "_replaces": "_headers._replaces",
}
_TIME = "CAST(_event_time AS STRING)"
#: Partition folders by time, unless there is a column of that name.
_FOLDERS = {
    "day": "CAST(_event_time AS DATE)",
    "hour": f"CONCAT(SUBSTRING({_TIME}, 1, 10), 'T', SUBSTRING({_TIME}, 12, 2))",
}


def written_by(statement: CreateSink) -> Outside:
    """The target of a sink."""
    found = outside_of(statement)
    options = {name: value for name, value in found.options.items() if name not in (*OF_STREAM, "metadata")}
    return msgspec.structs.replace(found, options=options)


async def query_of(statement: CreateSink, catalogue: BrokerCatalogue) -> Select:
    """The query of a sink: its own, or one that passes on the rows of a stream. Raises SqlError."""
    is_kafka = written_by(statement).connector == "kafka"
    if statement.query is not None:
        # The record key is the message partition, so the query needs it.
        given = tuple(option for option in statement.options if is_kafka and option.name == "partition_by")
        return msgspec.structs.replace(statement.query, options=(*statement.query.options, *given))
    found = await catalogue.load(statement.stream, statement.stream_span)
    if found.source is not None:
        raise statement.stream_span.error(
            f"{statement.stream} is an external source; use CREATE SINK … AS SELECT with it"
        )
    relation = found.relation
    if relation.columns is None:
        raise statement.stream_span.error(
            f"the columns of {relation.name} are unknown; declare them: "
            f"CREATE STREAM … (column type, …) WITH (queue = '{relation.name}'), and write a sink FROM that"
        )
    known = {name.lower() for name in relation.columns}
    added = {name: METADATA[name] for name in _metadata(statement) if name not in known}
    by = {name.lower() for name in _names(written_by(statement).options.get("partition_by", ""))}
    added |= {name: text for name, text in _FOLDERS.items() if name in by - known and not is_kafka}
    of_query = (*OF_STREAM, "partition_by") if is_kafka else OF_STREAM
    options = tuple(option for option in statement.options if option.name in of_query)
    return Select(
        items=(Star(span=statement.span), *(_item(text, name) for name, text in added.items())),
        source=statement.stream,
        source_span=statement.stream_span,
        options=options,
        span=statement.span,
    )


def check_columns(statement: CreateSink, plan: Plan) -> None:
    """Reject columns that the sink's file format does not support. Raises SqlError."""
    options = {option.name: option for option in statement.options}
    if plan.rows.whole_payload:
        raise statement.span.error("the columns of the query are unknown; name them in the SELECT")
    if (given := options.get("format")) is not None and given.value == "csv":
        for name, kind in plan.columns.items():
            if kind.element is not None:
                raise given.span.error(
                    f"the column {name} is an {kind}, which CSV cannot represent; use json or parquet"
                )
    if (by := options.get("partition_by")) is not None and options["connector"].value == "files":
        _check_folders(_names(by.value), plan, by.span, from_stream=statement.query is None)


def _check_folders(names: list[str], plan: Plan, span: Span, *, from_stream: bool) -> None:
    columns = {name.lower(): (name, kind) for name, kind in plan.columns.items()}
    for name in names:
        if name.lower() not in columns:
            hint = did_you_mean(name, [*plan.columns, *_FOLDERS]) or f"; use one of {', '.join(plan.columns)}"
            where = "no column of the stream" if from_stream else "not selected"
            raise span.error(f"partition_by names {name!r}, which is {where}{hint}")
        kind = columns[name.lower()][1]
        if name.startswith("_"):
            raise span.error(f"partition_by names {name!r}: readers skip folders that start with _")
        if kind.element is not None or kind.is_float:
            raise span.error(f"partition_by names {name!r}, a {kind}, which cannot be a folder name")
    if len({name.lower() for name in names}) == len(columns):
        raise span.error("partition_by contains every column, so none is left for the files; remove one")


async def check_target(change: JobChange, statement: CreateSink, job: Job | None) -> None:
    """Reject a target that is not writable or belongs to another sink. Raises SqlError."""
    writes = written_by(statement)
    options = dict(writes.options)
    span = next((option.span for option in statement.options if option.name == "path"), statement.span)
    if (path := options.get("path")) is not None:
        path = path.rstrip("/")
        for other in await change.all():
            taken = None if other.definition.writes is None else other.definition.writes.options.get("path")
            if taken is not None and taken.rstrip("/") == path and (job is None or other.id != job.id):
                shown = without_password(path)
                raise span.error(f"the sink {other.full_name} writes to {shown}; choose another path")
        options["path"] = f"{path}/v{1 if job is None else job.version + 1}"
    try:
        await asyncio.to_thread(check_sink, writes.connector, options)
    except Unreachable as error:
        raise span.error(str(error)) from error


def _metadata(statement: CreateSink) -> list[str]:
    given = next((option for option in statement.options if option.name == "metadata"), None)
    if given is None:
        return []
    names = [name.lower() for name in _names(given.value)]
    for name in names:
        if name not in METADATA:
            hint = did_you_mean(name, METADATA) or f"; use one of {', '.join(METADATA)}"
            raise given.span.error(f"metadata contains {name!r}, which messages do not have{hint}")
    return names


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _item(text: str, name: str) -> Item:
    return Item(expression=parse_expression(text), name=name)
