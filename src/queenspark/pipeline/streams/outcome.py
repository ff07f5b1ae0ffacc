"""The output of a batch in one bucket: windows, rows, late and dead records, failures, and statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from ...formats.window_message import lane_of
from ...sql import Plan
from ...sql.keys import shortened
from ...sql.running import RowStage, shown_windows
from ...sql.running.rows import Given
from ...store.definitions import Repeats
from ...store.progress import ReadPoint, Stream
from ...store.window_sink import REPEATS, Parts
from ...windows import Engine, Report, Result, State
from ...windows.layout import in_version
from ...windows.membership import is_given_out
from ...windows.record_columns import is_merged
from ...windows.spec import OUTPUT as WINDOW_COLUMNS
from .definitions import Definitions
from .offset import Batch
from .parcels import DEAD, ROWS, Unpacked

_STREAM = ["stream", "version"]
_MOST_DEAD = 100  # rows per job, batch and bucket
_MOST_REASON = 1000
_STATS = {
    "stream": pl.Int64, "version": pl.Int32, "watermark_us": pl.Int64, "open_windows": pl.Int64,
    "open_txid": pl.Int64, "open_id": pl.Int64, "records": pl.Int64, "windows": pl.Int64, "late": pl.Int64,
    "dropped": pl.Int64, "dead": pl.Int64,
}  # fmt: skip
_FAILURES = {
    "stream": pl.Int64, "version": pl.Int32, "txid": pl.Int64, "id": pl.Int64, "tick": pl.Int64,
    "error": pl.String,
}  # fmt: skip


class Outcome:
    """Computed eagerly; `failed` has the earlier failures, and the jobs with failed rows."""

    def __init__(
        self,
        definitions: Definitions,
        engine: Engine,
        batch: Batch,
        result: Result,
        given: Unpacked,
        failed: Mapping[Stream, str],
        over: set[Stream],
        point: Callable[[Stream], ReadPoint],
    ) -> None:
        self._definitions = definitions
        self._engine = engine
        self._batch = batch
        self._result = result
        self._given = given
        self._over = over
        self._read_point = point
        self.failed = dict(failed)
        self._windows: list[pl.DataFrame] = []
        self._rows = [self._spoken(given.rows)]
        self._repeats: list[pl.DataFrame] = []
        self._dead = [given.dead, _engine_dead(result.dead)]
        for frame in result.rows:
            self._take(frame)

    @property
    def state(self) -> State:
        """The engine's state after the batch."""
        return self._result.state

    @property
    def report(self) -> Report:
        """The engine's report."""
        return self._result.report

    def parts(self) -> Parts:
        """Everything to push."""
        windows, rows = self._all_windows(), self._all_rows()
        dead = pl.concat(self._dead)
        return Parts(
            windows=windows,
            rows=rows,
            late=self._late(),
            dead=dead.filter(pl.col("reason").is_not_null() | pl.col("txid").is_not_null()).drop("count"),
            stats=self._stats(windows, rows, dead),
            failures=self._failures(),
            repeats=pl.concat([pl.DataFrame(schema=REPEATS), *self._repeats]),
        )

    def _take(self, frame: pl.DataFrame) -> None:
        """Process the engine's output for the streams of one spec."""
        plans = self._definitions.plans
        computing = frame.select(_STREAM).unique().rows()
        if not any(stream in plans for stream in computing):
            self._windows.append(frame.select(WINDOW_COLUMNS))
            return
        for (stream, version), part in frame.partition_by(_STREAM, as_dict=True).items():
            key = (int(stream), int(version))
            if key not in plans:
                self._windows.append(part.select(WINDOW_COLUMNS))
                continue
            try:
                self._compute(key, plans[key], part)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - a panic of Polars is no Exception
                self.failed[key] = f"{type(error).__name__}: {error}"[:_MOST_REASON]

    def _compute(self, stream: Stream, plan: Plan, frame: pl.DataFrame) -> None:
        """Compute the rows of one job."""
        if self._definitions.is_silent(stream, self._batch.end):
            return
        query = self._definitions.by_stream[stream].body.query or {}
        if plan.kind == "rows":
            records = [each for each in self._given.records if _has(each, stream)]
            columns = pl.concat([_of(each, stream) for each in records]).drop("key", *_STREAM, "source")
            frame = frame.join(columns, on=["txid", "id"], how="left")
        else:
            frame = self._in_version(frame)
        given = _rows(self._definitions.row_stage(stream), plan, frame)
        self._note_dead(stream, plan, given)
        if query.get("output") == "windows":
            self._windows.append(shown_windows(plan, given))
        else:
            self._rows.append(given.rows.select(list(ROWS)))
            repeats = self._definitions.repeats(stream, self._read_point(stream))
            if repeats is not None:
                self._note_repeats(stream, plan, repeats, frame, given.rows["transaction_id"])

    def _note_repeats(
        self, stream: Stream, plan: Plan, repeats: Repeats, frame: pl.DataFrame, ids: pl.Series
    ) -> None:
        """Collect the ids under which an earlier version may have emitted the same rows."""
        job, version = stream
        for earlier in range(repeats.first, version):
            if "window_id" in frame.columns:
                window_id = in_version(pl.col("window_id"), version, earlier)
                known = _rows(RowStage(plan, job, earlier), plan, frame.with_columns(window_id))
            else:
                known = _rows(RowStage(plan, job, earlier), plan, frame)
            found = pl.DataFrame({"transaction_id": ids, "earlier_id": known.rows["transaction_id"]})
            self._repeats.append(
                found.select(
                    queue_id=pl.lit(self._definitions.window_queues.get(job), dtype=pl.Int64),
                    after=pl.lit(repeats.after, dtype=pl.Int64),
                    transaction_id="transaction_id",
                    earlier_id="earlier_id",
                )
            )

    def _in_version(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Exclude windows emitted by another version of the job."""
        return _bounded(frame, self._definitions)

    def _note_dead(self, stream: Stream, plan: Plan, given: Given) -> None:
        if given.dead.is_empty():
            return
        kept = 0 if plan.options.get("on_error") == "skip" else _MOST_DEAD
        dead = given.dead.head(max(kept, 1))
        if not kept:
            dead = dead.with_columns(reason=pl.lit(None, dtype=pl.String), txid=pl.lit(None, dtype=pl.Int64))
        counts = pl.when(pl.int_range(pl.len()) == 0).then(given.dead.height - dead.height + 1).otherwise(1)
        named = dead.with_columns(
            pl.col("reason").str.head(_MOST_REASON),
            stream=pl.lit(stream[0], dtype=pl.Int64),
            version=pl.lit(stream[1], dtype=pl.Int32),
            count=counts.cast(pl.Int64),
        )
        self._dead.append(named.select(list(DEAD)))

    def _spoken(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Exclude rows of versions that only catch up."""
        for stream in self._definitions.silent if not rows.is_empty() else ():
            if self._definitions.is_silent(stream, self._batch.end) and _has(rows, stream):
                rows = rows.filter(~_is(stream))
        return rows

    def _all_windows(self) -> pl.DataFrame:
        """The windows to push: those of their version, with their queue."""
        if not self._windows:
            return pl.DataFrame(schema={"queue_id": pl.Int64})
        windows = pl.concat(self._windows, how="diagonal")
        return _bounded(self._with_partitions(self._with_queue(windows)), self._definitions)

    def _with_queue(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the output queue.

        That of a dropped stream is 0: a batch that is repeated after the drop must have as many rows as
        before, because the sink counts those it has pushed. It does not write these rows.
        """
        queues = self._definitions.output_queues
        frame = frame.join(queues, on="stream", how="left", maintain_order="left")
        return frame.with_columns(pl.col("queue_id").fill_null(0))

    def _with_partitions(self, windows: pl.DataFrame) -> pl.DataFrame:
        """Add the partition in the window queue: the key, or one of its lanes if unordered."""
        rows = self._definitions.by_stream.items()
        unordered = {stream for stream, row in rows if not row.body.ordered}
        if not unordered:
            return windows
        partitions = [
            lane_of(key, window_id) if (stream, version) in unordered else key
            for stream, version, key, window_id in windows.select(*_STREAM, "key", "window_id").iter_rows()
        ]
        return windows.with_columns(partition=pl.Series(partitions, dtype=pl.String))

    def _all_rows(self) -> pl.DataFrame:
        """The rows to push in a deterministic order, with their queue."""
        # Payloads of rows for files are structs; those of no rows are text.
        rows = pl.concat([rows for rows in self._rows if not rows.is_empty()] or self._rows[:1])
        rows = self._with_queue(rows)
        if rows.schema["payload"] != pl.String:
            return rows  # for files, where rows have no position
        # Ids of one record end with a number; by length first, 10 comes after 9.
        length = pl.col("transaction_id").str.len_bytes()
        return rows.sort("order", "txid", "id", "stream", length, "transaction_id")

    def _late(self) -> pl.DataFrame:
        """The late log: warned and dropped records."""
        result = self._result
        position = ["stream", "version", "txid", "id"]
        warned = result.late_log.join(result.dropped, on=position, how="anti")
        found = [
            warned.with_columns(dropped=pl.lit(False)),
            result.dropped.with_columns(dropped=pl.lit(True)),
        ]
        return pl.concat(found).with_columns(shortened(pl.col("key")))

    def _failures(self) -> pl.DataFrame:
        """Failed jobs, with the position of their state."""
        rows = [(*stream, *self._read_point(stream), reason) for stream, reason in self.failed.items()]
        return pl.DataFrame(rows, schema=_FAILURES, orient="row")

    def _stats(self, windows: pl.DataFrame, rows: pl.DataFrame, dead: pl.DataFrame) -> pl.DataFrame:
        """Statistics of the streams with activity in the batch, and of those that end with it."""
        report = self.report
        records: dict[Stream, int] = _count(self._given.rows)
        for frame in self._given.records:
            counted = pl.col("count").sum() if is_merged(frame) else None
            for stream, count in _count(frame, counted).items():
                records[stream] = records.get(stream, 0) + count
        counts: dict[str, Mapping[Stream, int]] = {
            "records": records,
            "windows": _count(windows) | _count(rows),
            "dead": _count(dead, pl.col("count").sum()),
            "late": report.late_now,
            "dropped": report.dropped_now,
        }
        # Windows outside their version's bounds are not pushed, but no longer open either.
        sealed = {stream for frame in self._result.rows for stream in _count(frame)}
        found = []
        for stream in sorted(sealed.union(self._over, *counts.values())):
            open_ = report.open_of(stream, self._engine.home(stream))
            found.append(
                {
                    "stream": stream[0],
                    "version": stream[1],
                    "watermark_us": report.watermark.get(stream),
                    "open_windows": open_.windows if open_ is not None else 0,
                    "open_txid": open_.txid if open_ is not None else None,
                    "open_id": open_.id if open_ is not None else None,
                    **{name: of_streams.get(stream, 0) for name, of_streams in counts.items()},
                }
            )
        return pl.DataFrame(found, schema=_STATS)


def _rows(stage: RowStage, plan: Plan, frame: pl.DataFrame) -> Given:
    return stage.of_buffers(frame) if plan.kind == "rows" else stage.of_windows(frame)


def _bounded(windows: pl.DataFrame, definitions: Definitions) -> pl.DataFrame:
    """Exclude windows outside the bounds of their version."""
    bounds = definitions.bounds
    if bounds.is_empty():
        return windows
    bounded = windows.join(bounds, on=_STREAM, how="left", maintain_order="left")
    return bounded.filter(is_given_out()).drop("from_us", "until_us")


def _engine_dead(dead: pl.DataFrame) -> pl.DataFrame:
    """Records without a time, as reported by the engine."""
    nothing = pl.lit(None, dtype=pl.Int64)
    return dead.with_columns(
        start_us=nothing,
        end_us=nothing,
        reason=pl.lit(None, dtype=pl.String),
        count=pl.lit(1, dtype=pl.Int64),
    ).select(list(DEAD))


def _is(stream: Stream) -> pl.Expr:
    return (pl.col("stream") == stream[0]) & (pl.col("version") == stream[1])


def _of(frame: pl.DataFrame, stream: Stream) -> pl.DataFrame:
    return frame.filter(_is(stream))


def _has(frame: pl.DataFrame, stream: Stream) -> bool:
    return bool(frame.select(_is(stream).any()).item())


def _count(rows: pl.DataFrame, count: pl.Expr | None = None) -> dict[Stream, int]:
    if rows.is_empty():
        return {}
    counted = rows.group_by(_STREAM).agg(pl.len() if count is None else count)
    return {(stream, version): int(number) for stream, version, number in counted.iter_rows()}
