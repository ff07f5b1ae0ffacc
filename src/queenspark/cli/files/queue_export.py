"""Reading a queue in the order of its log, page by page, and writing it as lines."""

import csv
import io
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.cli.files.output_file import Checkpoint, Output
from queenspark.cli.files.progress import TransferProgress

POLL_SECONDS = 0.5
ENVELOPE = ("partition", "transactionId", "createdAt", "headers", "data")


class Wanted(msgspec.Struct):
    """The selection of an export."""

    queue: str
    kind: str
    columns: list[str] | None
    full: bool
    since: str | None
    partition: str | None


class _Message(msgspec.Struct, rename="camel"):
    transaction_id: str
    partition: str
    created_at: str
    data: msgspec.Raw
    headers: dict[str, str] = {}


class Export:
    """Copies the messages of a queue, each once."""

    def __init__(self, broker: BrokerApi, wanted: Wanted) -> None:
        self._broker = broker
        self._wanted = wanted
        self._written = 0
        #: Whether a signal has asked it to end.
        self.stopped = False

    def on_signal(self, *_: object) -> None:
        """End after the page that is being written; at the second signal at once."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True

    def run(self, output: Output, *, follow: bool) -> None:
        """Write everything below the horizon, and with `follow` new messages until a signal."""
        wanted = self._wanted
        queue = self._broker.get("resources", "queues", wanted.queue, query={"limit": 1})
        checkpoint = output.checkpoint or Checkpoint(msgspec.to_builtins(wanted), queue["createdAt"])
        if checkpoint.created != queue["createdAt"]:
            raise Failure(f"{wanted.queue} was deleted and recreated: use --overwrite to start over.")
        output.begin(checkpoint)
        with TransferProgress(wanted.queue, None) as progress:
            end: _Position | None = None
            while not self.stopped:
                page = self._page(checkpoint.position)
                end = end or _position(page.end)
                if page.messages or checkpoint.position is None:
                    checkpoint = self._write(page, checkpoint, output)
                progress.show(checkpoint.bytes, checkpoint.messages)
                if not follow and (not page.messages or _position(page.next) >= end):
                    return
                if not page.messages:
                    time.sleep(POLL_SECONDS)

    def summary(self, to: str) -> str:
        """The summary sentence."""
        count = self._written
        also = " Run the same command again to continue." if self.stopped else ""
        return f"Exported {count:,} message{'' if count == 1 else 's'} of {self._wanted.queue} to {to}.{also}"

    def _page(self, after: str | None) -> "_Page":
        query = {"after": after, "from": self._wanted.since if after is None else None}
        page: _Page = self._broker.get(
            "resources", "queues", self._wanted.queue, "log", query=query, kind=_Page
        )
        return page

    def _write(self, page: "_Page", checkpoint: Checkpoint, output: Output) -> Checkpoint:
        partition = self._wanted.partition
        messages = [message for message in page.messages if partition in (None, message.partition)]
        columns = checkpoint.columns
        if self._wanted.kind == "csv":
            columns = columns or self._columns(messages)
        lines = self._lines(messages, columns, header=checkpoint.columns is None)
        checkpoint = Checkpoint(
            checkpoint.wanted,
            checkpoint.created,
            page.next,
            checkpoint.bytes,
            checkpoint.messages + len(messages),
            columns,
        )
        output.append(lines, checkpoint)
        self._written += len(messages)
        return checkpoint

    def _columns(self, messages: Sequence["_Message"]) -> list[str] | None:
        """The columns of CSV that are known so far."""
        if self._wanted.full:
            return list(ENVELOPE)
        if self._wanted.columns is not None:
            return self._wanted.columns
        return list(dict.fromkeys(name for message in messages for name in _fields(message))) or None

    def _lines(self, messages: Iterable["_Message"], columns: Sequence[str] | None, *, header: bool) -> bytes:
        if self._wanted.kind != "csv":
            return b"".join(self._json(message) + b"\n" for message in messages)
        if columns is None:
            return b""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if header:
            writer.writerow(columns)
        writer.writerows(self._row(message, columns) for message in messages)
        return text.getvalue().encode()

    def _json(self, message: "_Message") -> bytes:
        # A payload may be written over several lines; one that is not stays unchanged.
        data = bytes(message.data)
        data = msgspec.json.format(data, indent=-1) if b"\n" in data or b"\r" in data else data
        return msgspec.json.encode(_envelope(message, data)) if self._wanted.full else data

    def _row(self, message: "_Message", columns: Sequence[str]) -> list[str]:
        if self._wanted.full:
            envelope = _envelope(message, bytes(message.data))
            return [_cell(envelope.get(name)) for name in columns]
        fields = _fields(message)
        if self._wanted.columns is None and (unknown := fields.keys() - set(columns)):
            raise Failure(
                f"The message {message.transaction_id} of partition {message.partition} has the field"
                f" {sorted(unknown)[0]}, which the ones before did not have: name all columns with --columns,"
                " or export json."
            )
        return [_cell(fields.get(name)) for name in columns]


class _Page(msgspec.Struct):
    messages: list[_Message]
    next: str
    end: str | None


_Position = tuple[int, int]


def _position(text: str | None) -> _Position:
    txid, _, number = (text or "0-0").partition("-")
    return int(txid), int(number)


def _fields(message: _Message) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(message.data, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        raise Failure(
            f"The message {message.transaction_id} of partition {message.partition} is not an object, which"
            " CSV needs: use --full, or export json."
        ) from None


def _envelope(message: _Message, data: bytes) -> dict[str, Any]:
    return {
        "partition": message.partition,
        "transactionId": message.transaction_id,
        "createdAt": message.created_at,
        "headers": message.headers,
        "data": msgspec.Raw(data),
    }


def _cell(value: Any) -> str:
    """A value of CSV: text unchanged, nothing for null, everything else as JSON."""
    if isinstance(value, str):
        return value
    raw = bytes(value) if isinstance(value, msgspec.Raw) else msgspec.json.encode(value)
    if raw.startswith(b'"'):
        return str(msgspec.json.decode(raw))
    return "" if raw == b"null" else raw.decode()
