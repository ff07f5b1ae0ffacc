"""Windows of a plan with window output: their form for consumers, and their records."""

from __future__ import annotations

import polars as pl

from ...windows.membership import Span, is_in_window
from ...windows.spec import OUTPUT
from ..keys import key_text, shortened
from ..planning.plan import Plan
from ..types import STRING
from .messages import MessageDecoder
from .records import RecordStage
from .rows import Given

_PARTITION = "key:_partition"


def is_keyed_by_partition(plan: Plan) -> bool:
    """Whether the partition name alone is the key of its windows."""
    return [name for name, _ in plan.records.key] == [_PARTITION]


def shown_windows(plan: Plan, given: Given) -> pl.DataFrame:
    """Return the windows of a row stage, with their aggregates as text in `values`.

    A partition name is used as the key unchanged, even where the key of a row would be JSON.
    """
    has_values = any(not name.startswith("_") for name in plan.columns)
    return given.rows.with_columns(
        pl.col(_PARTITION if is_keyed_by_partition(plan) else "key").alias("key"),
        (pl.col("payload") if has_values else pl.lit(None, dtype=pl.String)).alias("values"),
    ).select(*OUTPUT, "values")


class WindowReader:
    """Finds the records of a plan's windows among messages, as the pipeline did."""

    def __init__(self, plan: Plan) -> None:
        assert plan.window is not None
        self._spec = plan.window
        self._decoder = MessageDecoder([plan])
        self._stage = RecordStage(plan, 0, 0)
        self.by_partition = is_keyed_by_partition(plan)

    def engine_key(self, key: str) -> str:
        """The key of a window in the engine and in the log of late records."""
        if not self.by_partition:
            return key
        return str(pl.select(shortened(key_text([(pl.lit(key), STRING)]))).item())

    def inside(self, messages: pl.DataFrame, key: str, span: Span) -> set[tuple[int, int]]:
        """Return the positions of messages in the window of a key and time span."""
        records = self._stage.run(self._decoder.decode(messages)).records
        mine = records.filter(
            shortened(pl.col("key")) == self.engine_key(key), is_in_window(self._spec, span)
        )
        return set(mine.select("txid", "id").rows())
