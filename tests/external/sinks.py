"""Sinks of streams: their rows, without Spark or as Spark has written them."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import polars as pl
import pyarrow as pa

from queenspark.pipeline.external.job_processor import JobProcessor
from queenspark.pipeline.external.packed_rows import packed_rows, unpacked_rows
from queenspark.pipeline.streams.window_processor import WindowProcessor
from queenspark.store.log import log_of_this_process
from tests.pipeline.streams.local import LocalJob


class LocalSink(LocalJob):
    """The query of a sink, up to the rows that Spark would write."""

    def _processor(self) -> WindowProcessor:
        return JobProcessor(self._url, 0, self._buckets, self.job, packed_rows)

    def close(self) -> None:
        """Disconnect."""
        super().close()
        log_of_this_process(self._url).close()

    def rows(self) -> list[dict[str, Any]]:
        """All rows that came out."""
        found: list[dict[str, Any]] = []
        for frame in self.outputs:
            packed = pa.array(frame["rows"].tolist(), pa.binary())
            for rows in unpacked_rows(packed):
                found += rows.select(pl.col("payload").struct.unnest()).to_dicts()
        return found


def listed_files(folder: Path) -> list[Path]:
    """The files of a folder that Spark has committed."""
    found: dict[str, None] = {}
    for log in (folder / "_spark_metadata").iterdir():
        if log.name.startswith("."):
            continue
        for line in log.read_text().splitlines()[1:]:
            found[unquote(urlparse(json.loads(line)["path"]).path)] = None
    return [Path(path) for path in found]
