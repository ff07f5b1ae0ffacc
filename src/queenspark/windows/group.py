"""The step of one spec's streams, with failures isolated per stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from .directory import Directory, stream_of
from .errors import RecordsNeeded
from .moves import Stream
from .spec import WindowSpec
from .step import Step, ticks_of

Tables = dict[str, pl.DataFrame]


class Group:
    """A batch and tick for the streams of one spec.

    They are processed together. On failure the streams are bisected until the failing ones are isolated:
    their tables stay unchanged.
    """

    def __init__(
        self,
        spec: WindowSpec,
        tables: Tables,
        frames: Sequence[pl.DataFrame],
        safe: Mapping[Stream, int],
        was: Mapping[Stream, int] | None,
    ) -> None:
        self._spec = spec
        self._was = was
        self.steps: list[Step] = []
        self.failed: dict[Stream, str] = {}
        self.tables = self._stepped(tables, frames, safe)

    def _stepped(self, tables: Tables, frames: Sequence[pl.DataFrame], safe: Mapping[Stream, int]) -> Tables:
        """The tables after the step."""
        was = None if self._was is None else {each: at for each, at in self._was.items() if each in safe}
        try:
            step = Step(self._spec, tables, frames, safe, was)
            step.run()
            after = step.tables()
        except (KeyboardInterrupt, SystemExit, RecordsNeeded):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic of polars is no Exception
            if len(safe) > 1:
                return self._bisected(tables, frames, safe)
            self.failed |= dict.fromkeys(safe, f"{type(error).__name__}: {error}")
            return tables
        self.steps.append(step)
        return after

    def _bisected(self, tables: Tables, frames: Sequence[pl.DataFrame], safe: Mapping[Stream, int]) -> Tables:
        directory = Directory(tables.get("streams"), tables.get("keys"))
        numbered = directory.number_streams(ticks_of(safe)).select("stream", "version", "g").rows()
        numbers = {(stream, version): g for stream, version, g in numbered}
        tables = tables | {"streams": directory.streams}
        pieces = [_part(tables, numbers.values(), taken=False)]
        streams, middle = list(safe), len(safe) // 2
        for half in (streams[:middle], streams[middle:]):
            mine = _part(tables, [numbers[stream] for stream in half], taken=True)
            records = [part for frame in frames if not (part := _records(frame, half)).is_empty()]
            pieces.append(self._stepped(mine, records, {stream: safe[stream] for stream in half}))
        return _joined(pieces)


def _part(tables: Tables, numbers: Collection[int], *, taken: bool) -> Tables:
    """The rows of some streams, or of all others."""
    chosen = list(numbers)
    return {
        name: table.filter(
            (pl.col("g") if "g" in table.columns else stream_of(pl.col("k"))).is_in(chosen) == taken
        )
        for name, table in tables.items()
    }


def _records(frame: pl.DataFrame, streams: Collection[Stream]) -> pl.DataFrame:
    wanted = pl.DataFrame(list(streams), schema={"stream": pl.Int64, "version": pl.Int32}, orient="row")
    return frame.join(wanted, on=["stream", "version"], how="semi")


def _joined(pieces: Sequence[Tables]) -> Tables:
    names = {name: None for piece in pieces for name in piece}
    return {
        name: pl.concat([piece[name] for piece in pieces if name in piece], how="diagonal") for name in names
    }
