"""`queenspark streams`: list, inspect, explain, define, seek and delete streams."""

from typing import Annotated, Any

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.confirm import confirm
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.explain import print_explanation
from queenspark.cli.noun import noun
from queenspark.cli.options import (
    AsJson,
    Limit,
    Namespace,
    Offset,
    Search,
    Sort,
    StreamName,
    Url,
    Yes,
    duration,
)
from queenspark.cli.output import out, print_facts, print_json, print_page, print_table, records_of, say
from queenspark.cli.seek import timestamp
from queenspark.formats.definition import FIELDS, to_wire

app = noun("List, inspect, explain, define, seek and delete streams.")

COLUMNS = [
    ("stream", "name"),
    ("namespace", "namespace"),
    ("windows", "windowType"),
    ("version", "version"),
    ("watermark", "progress.watermark"),
    ("lag, s", "progress.lagSeconds"),
    ("open", "progress.openWindows"),
    ("sealed", "progress.sealedWindows"),
    ("late", "progress.late"),
    ("dropped", "progress.dropped"),
    ("dead", "progress.dead"),
    ("leases", "activeLeases"),
]
GROUPS = [
    ("group", "name"),
    ("lag", "lag"),
    ("in flight", "processing"),
    ("oldest", "oldestUnackedAt"),
    ("last ack", "lastAckedAt"),
]


@app.command("list")
def list_streams(
    namespace: Namespace = None,
    search: Search = None,
    sort: Sort = "name",
    limit: Limit = 100,
    offset: Offset = 0,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the streams (default of `queenspark streams`)."""
    page = {"search": search, "sort": sort, "limit": limit, "offset": offset}
    with BrokerApi(url) as broker:
        response = broker.get("resources", "streams", query={"namespace": namespace, **page})
    nothing = "No streams found; define one with `queenspark streams define`."
    print_page(response, "streams", COLUMNS, nothing=nothing, offset=offset, as_json=as_json)


@app.command("show")
def show_stream(
    stream: StreamName, namespace: Namespace = None, url: Url = None, as_json: AsJson = False
) -> None:
    """Show a stream: definition, watermark, and the lag of its groups."""
    with BrokerApi(url) as broker:
        response = broker.get("resources", "streams", stream, query={"namespace": namespace})
    if as_json:
        return print_json(response)
    groups = records_of(response, "groups")
    print_facts({name: value for name, value in response.items() if name not in ("groups", "consumerGroups")})
    if groups:
        out().print()
        print_table(groups, GROUPS)
    return None


@app.command("explain")
def explain_stream(
    stream: StreamName, namespace: Namespace = None, url: Url = None, as_json: AsJson = False
) -> None:
    """Explain why the next window is not sealed yet, and how to fix it; most likely reason first."""
    with BrokerApi(url) as broker:
        response = broker.get("resources", "streams", stream, "explain", query={"namespace": namespace})
    return print_json(response) if as_json else print_explanation("stream", stream, response)


@app.command("define")
def define_stream(
    stream: StreamName,
    source: Annotated[list[str], typer.Option(metavar="QUEUE", help="Source queue; repeatable.")],
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Namespace.")] = "default",
    partitioned: Annotated[
        bool, typer.Option("--partitioned/--global", help="Windows per partition name, or one global window.")
    ] = False,
    ordered: Annotated[
        bool,
        typer.Option(
            "--ordered/--unordered", help="One window of a key in flight per group, or several in any order."
        ),
    ] = True,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPRESSION",
            help="Column that other expressions use, such as net='data.amount * 0.8'; repeatable.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPRESSION", help="Key expression, such as data.userId; repeatable."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Filter for records, such as 'data.amount > 0'.")
    ] = None,
    aggregate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPRESSION",
            help="Aggregate per window, such as total='sum(data.amount)'; repeatable.",
        ),
    ] = None,
    having: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Filter for windows, such as 'total > 10'.")
    ] = None,
    emit: Annotated[
        str | None, typer.Option(metavar="WHEN", help="When to emit windows: final or changes.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Emit windows, or rows into the queue NAMESPACE.STREAM."),
    ] = None,
    tumbling: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="SECONDS", help="Length of tumbling windows (default: 60)."),
    ] = None,
    sliding: Annotated[
        float | None, typer.Option(parser=duration, metavar="SECONDS", help="Length of sliding windows.")
    ] = None,
    slide: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="SECONDS", help="Interval between sliding windows."),
    ] = None,
    session: Annotated[
        float | None,
        typer.Option(
            parser=duration, metavar="SECONDS", help="Session windows that end after this inactivity."
        ),
    ] = None,
    count: Annotated[int | None, typer.Option(metavar="N", help="Count windows of N records.")] = None,
    step: Annotated[
        int | None, typer.Option(metavar="N", help="Records between the starts of count windows.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="Emit, with each record, the last N of its key.")
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            parser=duration,
            metavar="SECONDS",
            help="How long windows stay open for late records (default: 30).",
        ),
    ] = None,
    lease: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="SECONDS", help="Lease duration of a window (default: 60)."),
    ] = None,
    window_retention: Annotated[
        float | None,
        typer.Option(
            parser=duration, metavar="SECONDS", help="Retention of sealed windows (default: no limit)."
        ),
    ] = None,
    event_time: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Path of the event time in the payload (default: push time)."),
    ] = None,
    late: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Policy for late records: process, warn or drop.")
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(
            parser=duration, metavar="SECONDS", help="Inactivity after which a key's windows are sealed."
        ),
    ] = None,
    emit_empty: Annotated[
        bool, typer.Option("--emit-empty", help="Emit windows without records too.")
    ] = False,
    start: Annotated[
        str | None, typer.Option(metavar="WHERE", help="Starting position: earliest, latest or a time.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Reprocess the history as a new version.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Define a stream, or redefine it; omitted options are reset to their defaults."""
    kind = _kind(
        {"tumbling": tumbling, "sliding": sliding, "session": session, "count": count, "rows": rows},
        sliding={"slide": slide},
        count={"step": step},
    )
    given: dict[str, Any] = {
        "name": stream,
        "namespace": namespace,
        "sources": source,
        "partitioned": partitioned,
        "ordered": ordered,
        "columns": _by_name("column", column),
        "key": key,
        "where": where,
        "aggregates": _by_name("aggregate", aggregate),
        "having": having,
        "emit": emit,
        "output": output,
        "kind": kind,
        "duration": sliding if sliding is not None else tumbling,
        "slide": slide,
        "gap": session,
        "size": count if count is not None else rows,
        "step": step,
        "grace": grace,
        "lease": lease,
        "retention": window_retention,
        "event_time": event_time,
        "late": late,
        "idle": idle,
        "emit_empty": emit_empty,
        "start": start,
        "reset": reset,
    }
    with BrokerApi(url) as broker:
        response = broker.post("stream", "define", body=to_wire(_in_milliseconds(given)))
    if as_json:
        return print_json(response)
    where_rows_are = f"; its rows are in the queue {response['queue']}" if "queue" in response else ""
    return say(f"Defined the stream {stream}, version {response['version']}{where_rows_are}.")


def _kind(sizes: dict[str, float | None], **more: dict[str, float | None]) -> str:
    """Return the kind of the windows: the one whose size is given. `more` are further options of a kind."""
    chosen = [kind for kind, size in sizes.items() if size is not None] or ["tumbling"]
    if len(chosen) > 1:
        both = " and ".join(f"--{kind}" for kind in chosen)
        raise Failure(f"{both} cannot be combined: a stream has one kind of windows.", Exit.USAGE)
    for kind, options in more.items():
        for name, value in options.items():
            if value is not None and kind != chosen[0]:
                raise Failure(f"--{name} requires --{kind}.", Exit.USAGE)
    return chosen[0]


def _by_name(option: str, given: list[str] | None) -> dict[str, str]:
    """Expressions that are given as NAME=EXPRESSION."""
    found = {}
    for each in given or ():
        name, equals, expression = each.partition("=")
        if not (equals and name.strip() and expression.strip()):
            raise typer.BadParameter(
                f"--{option} {each!r} is invalid: use NAME=EXPRESSION, such as {_EXAMPLES[option]}"
            )
        found[name.strip()] = expression.strip()
    return found


_EXAMPLES = {"aggregate": "total='sum(data.amount)'", "column": "net='data.amount * 0.8'"}


def _in_milliseconds(given: dict[str, Any]) -> dict[str, Any]:
    """Convert the durations of options from seconds to milliseconds."""
    return {
        name: round(value * 1000) if FIELDS[name].is_duration and value is not None else value
        for name, value in given.items()
    }


@app.command("seek")
def seek_stream(
    stream: StreamName,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the consumer group.")],
    to: Annotated[
        str, typer.Option(metavar="TIME", help="ISO time; the group receives windows that end after it.")
    ],
    namespace: Namespace = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Seek a group to a time: it receives all windows that end later."""
    body = {"streamName": stream, "consumerGroup": group, "timestamp": timestamp(to), "namespace": namespace}
    with BrokerApi(url) as broker:
        response = broker.post("stream", "seek", body=body)
    if as_json:
        return print_json(response)
    return say(f"The group {group} continues from {body['timestamp']} of {stream}.")


@app.command("delete")
def delete_stream(
    stream: StreamName,
    namespace: Namespace = None,
    yes: Yes = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Delete a stream with all its windows; its source queues are kept."""
    confirm(f"Delete the stream {stream} with all its windows?", yes)
    with BrokerApi(url) as broker:
        response = broker.delete("resources", "streams", stream, query={"namespace": namespace})
    if as_json:
        return print_json(response)
    return say(f"Deleted the stream {stream}.")
