"""Decodes the messages of a partition: fields of their payloads, and Kafka's metadata as pseudo-columns."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from ...sql.expressions.times import from_micros
from ...sql.payload import Field
from ..fields import ColumnFields, JsonFields
from ..reader import DEAD, Read
from .kafka_options import Format
from .kafka_position import OFFSET_BITS

#: Pseudo-columns of each record.
KEY, PARTITION, OFFSET, TIMESTAMP = "_key", "_partition", "_offset", "_timestamp"
HEADERS = "_headers."
EVENT_TIME = "_event_time"
Times = npt.NDArray[np.int64]


class RecordDecoder:
    """Decodes messages into records with the fields and pseudo-columns that a job reads."""

    def __init__(self, format_: Format, fields: Sequence[Field], pseudo: Sequence[str]) -> None:
        self._format = format_
        self._json = JsonFields(fields) if format_ == "json" else None
        self._columns = ColumnFields(fields) if format_ == "text" or (format_ == "raw" and fields) else None
        self._reads_key = KEY in pseudo
        self._headers = [name for name in pseudo if name.startswith(HEADERS)]

    def read(self, partition: int, messages: Sequence[Message], times: Times) -> Read:
        """Decode the messages of one partition. `times` are their times in the log, in milliseconds."""
        offsets = pl.Series([message.offset() for message in messages], dtype=pl.Int64)
        frame = pl.DataFrame(
            {
                "txid": pl.Series(times * 1000, dtype=pl.Int64),
                "id": offsets + (partition << OFFSET_BITS),
                "created_us": pl.Series(times * 1000, dtype=pl.Int64),
                OFFSET: offsets,
                TIMESTAMP: _timestamps(messages),
            }
        ).with_columns(
            pl.lit(str(partition)).alias("partition"),
            pl.lit(partition, dtype=pl.Int64).alias(PARTITION),
            from_micros(pl.col(TIMESTAMP) * 1000).alias(TIMESTAMP),
        )
        frame = frame.with_columns(
            pl.coalesce(TIMESTAMP, from_micros(pl.col("created_us"))).alias(EVENT_TIME)
        )
        values = [message.value() for message in messages]
        size = sum(map(len, filter(None, values)))
        reasons: dict[int, str] = {}
        columns = self._fields(values, reasons)
        if self._reads_key:
            keys = [message.key() for message in messages]
            size += sum(map(len, filter(None, keys)))
            columns.append(_text(KEY, keys, "the key", reasons))
        if self._headers:
            maps = [_headers(message) for message in messages]
            columns += [
                pl.Series(name, [each.get(name.removeprefix(HEADERS)) for each in maps], dtype=pl.String)
                for name in self._headers
            ]
        if columns:
            frame = frame.with_columns(columns)
        if not reasons:
            return Read(frame, pl.DataFrame(schema=DEAD), size)
        numbers = sorted(reasons)
        said = pl.Series("reason", [
            f"partition {partition}, offset {offsets[number]}: {reasons[number]}" for number in numbers
        ])  # fmt: skip
        dead = frame[numbers].select("txid", "id", "partition").with_columns(said)
        is_alive = np.ones(frame.height, dtype=bool)
        is_alive[numbers] = False
        return Read(frame.filter(pl.Series(is_alive)), dead, size)

    def _fields(self, values: list[bytes | None], reasons: dict[int, str]) -> list[pl.Series]:
        if self._json is not None:
            texts = _text("value", values, "the value", reasons)
            found, wrong = self._json.columns(texts)
            reasons |= wrong
            return found.get_columns()
        if self._columns is not None:
            texts = (
                _text("value", values, "the value", reasons)
                if self._format == "text"
                else pl.Series(
                    "value", [None if value is None else b64encode(value).decode() for value in values]
                )
            )
            return self._columns.columns(texts.cast(pl.String).to_frame()).get_columns()
        return []


def _timestamps(messages: Sequence[Message]) -> list[int | None]:
    """Return Kafka's timestamps in milliseconds; None for messages without one."""
    found = [message.timestamp() for message in messages]
    return [None if kind == TIMESTAMP_NOT_AVAILABLE else millis for kind, millis in found]


def effective(messages: Sequence[Message], newest: int, floor: int, cap: int) -> tuple[Times, int]:
    """Return the log time of each message of a partition, and the newest timestamp so far.

    `newest` is the newest timestamp of the preceding messages. Times are clamped to `floor` and `cap`.
    """
    stamps = np.fromiter(
        (message.timestamp()[1] for message in messages), dtype=np.int64, count=len(messages)
    )
    highest = np.maximum.accumulate(np.maximum(stamps, newest))
    return np.clip(highest, floor, cap), int(highest[-1])


def _text(name: str, values: list[bytes | None], what: str, reasons: dict[int, str]) -> pl.Series:
    """Decode bytes as text; invalid UTF-8 adds a reason."""
    try:
        return pl.Series(name, values, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.PolarsError:
        pass
    texts: list[str | None] = []
    for number, value in enumerate(values):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
            reasons[number] = f"{what} is not valid UTF-8; read the topic with format = 'raw'"
    return pl.Series(name, texts, dtype=pl.String)


def _headers(message: Message) -> dict[str, str]:
    """Return the headers as text; the last one wins if a name is repeated."""
    found: dict[str, str] = {}
    given: Any = message.headers()
    for name, value in given or ():
        if value is None:
            continue
        raw = value if isinstance(value, bytes) else str(value).encode()
        try:
            found[name] = raw.decode()
        except UnicodeDecodeError:
            found[name] = b64encode(raw).decode()
    return found
