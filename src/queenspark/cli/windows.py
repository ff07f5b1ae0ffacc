"""`queenspark windows`: print windows as they are sealed, without consuming them."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.following import follow
from queenspark.cli.options import AsJson, Namespace, StreamName, Url
from queenspark.cli.output import out, print_json_line
from queenspark.formats.window_message import WindowMessage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def windows(
    stream: StreamName,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Only windows of this key.")] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Print existing entries first, then follow.")
    ] = False,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N windows.")] = None,
    namespace: Namespace = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Print the windows of a stream as they are sealed, until Ctrl-C, without affecting consumers."""
    with BrokerApi(url) as broker:
        queue = broker.get("resources", "streams", stream, query={"namespace": namespace})["windowQueue"]
        show = _print_json if as_json else _print_window
        follow(broker, queue, stream, show, partition=key, from_beginning=from_beginning, count=count)


def _shown(message: dict[str, Any]) -> dict[str, Any]:
    window = msgspec.convert(message["data"], WindowMessage)
    return {
        "sealedAt": message["createdAt"],
        "key": window.key,
        "start": _time(window.start),
        "end": _time(window.end),
        "count": window.count,
        "revision": window.revision,
        "version": window.version,
        "id": window.id,
        **({} if window.values is None else {"aggregates": msgspec.json.decode(window.values)}),
    }


def _print_json(message: dict[str, Any]) -> None:
    print_json_line(_shown(message))


def _print_window(message: dict[str, Any]) -> None:
    window = _shown(message)
    again = f", revision {window['revision']}" if window["revision"] > 1 else ""
    records = "record" if window["count"] == 1 else "records"
    values = "".join(f", {name} {value}" for name, value in window.get("aggregates", {}).items())
    text = f"{window['start']} to {window['end']}: {window['count']} {records}{values}{again}"
    out().print(window["sealedAt"], window["key"], text, soft_wrap=True)


def _time(microseconds: int) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        moment = _LAST
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
