"""Messages of a queue as columns: the inputs of several plans, decoded once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import polars as pl

from ..expressions.time_text import timestamp_of_iso
from ..expressions.times import from_micros
from ..payload import PayloadDecoder
from ..planning.plan import Plan
from ..planning.scope import HEADERS, REVISION

#: Columns of messages; `payload` and `headers` are JSON text, present only if a plan reads them.
MESSAGE = {
    "queue_id": pl.Int32, "txid": pl.Int64, "id": pl.Int64, "created_us": pl.Int64, "queue": pl.String,
    "partition": pl.String, "transaction_id": pl.String, "payload": pl.String, "headers": pl.String,
}  # fmt: skip
_decode = msgspec.json.Decoder(dict[str, str]).decode
_FROM_HEADERS = ("_event_time", REVISION)


def reads_headers(plan: Plan) -> bool:
    """Whether a plan reads headers: by name, or for the event time of rows of another job."""
    own_time = plan.relation.has_event_time and plan.records.time is None
    return own_time or any(
        name in _FROM_HEADERS or name.startswith(f"{HEADERS}.") for name in plan.records.pseudo
    )


class MessageDecoder:
    """Adds the input columns of several plans: payload fields and pseudo-columns."""

    def __init__(self, plans: Iterable[Plan], *, payloads: bool = True) -> None:
        """Prepare; without `payloads`, the messages already have the fields."""
        plans = list(plans)
        fields = dict.fromkeys(field for plan in plans for field in plan.records.fields if payloads)
        self._decoder = PayloadDecoder(list(fields), must_be_objects=True) if fields else None
        self._pseudo = dict.fromkeys(name for plan in plans for name in plan.records.pseudo)
        if any(reads_headers(plan) for plan in plans):
            self._pseudo["_event_time"] = None
        if any(plan.relation.revisions and plan.kind == "stateless" for plan in plans):
            self._pseudo[REVISION] = None

    def decode(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Add the columns to messages; existing ones are kept."""
        columns: list[pl.Series | pl.Expr] = []
        missing = [name for name in self._pseudo if name not in messages.columns]
        if any(name in _FROM_HEADERS or name.startswith(f"{HEADERS}.") for name in missing):
            columns += self._from_headers(messages, missing)
        for name in missing:
            if name in ("_queue", "_partition", "_transaction_id"):
                columns.append(pl.col(name[1:]).alias(name))
            elif name == "_created_at":
                columns.append(from_micros(pl.col("created_us")).alias(name))
        messages = messages.with_columns(columns) if columns else messages
        if self._decoder is None:
            return messages
        return messages.hstack(self._decoder.columns(messages["payload"]).get_columns())

    def _from_headers(self, messages: pl.DataFrame, names: list[str]) -> list[pl.Series | pl.Expr]:
        # Records of files have no headers.
        texts = messages["headers"].to_list() if "headers" in messages.columns else [None] * messages.height
        maps = [{} if text is None else _decode(text) for text in texts]

        def column(name: str) -> pl.Series:
            return pl.Series(name, [each.get(name) for each in maps], dtype=pl.String)

        found: list[pl.Series | pl.Expr] = []
        for name in names:
            if name.startswith(f"{HEADERS}."):
                found.append(column(name.removeprefix(f"{HEADERS}.")).alias(name))
            elif name == REVISION:
                # Rows that are never revised have no such header.
                found.append(column(name).fill_null("1").cast(pl.Int64, strict=False))
            elif name == "_event_time":
                own = column(name).to_frame().select(timestamp_of_iso(pl.col(name)))[name]
                created = messages.select(from_micros(pl.col("created_us")))["created_us"]
                found.append(own.zip_with(own.is_not_null(), created))
        return found
