"""Determines from the definitions which job queries should be running."""

from __future__ import annotations

import logging
import re
from time import monotonic
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ...settings import Settings
from ...store.pipeline import PipelineStore
from .job_query import JobQuery

log = logging.getLogger("queenspark.pipeline")

TIDY_SECONDS = 20.0
"""Interval between removals of obsolete checkpoints."""


class JobQueries:
    """Lists the jobs that need their own query."""

    def __init__(self, url: str, *, checkpoints: str, max_rows: int, most: int) -> None:
        self._url = url
        self._checkpoints = checkpoints
        self._max_rows = max_rows
        self._most = most
        self._store = PipelineStore(url)
        self._names: set[str] = set()
        self._tidied_at: float | None = None

    @classmethod
    def of(cls, settings: Settings, url: str) -> JobQueries:
        """Create it from the settings."""
        streams = settings.spark_checkpoint
        folder = (
            f"{streams.rstrip('/')}-jobs"
            if streams
            else str(settings.data_dir.absolute() / "checkpoint" / "jobs")
        )
        return cls(url, checkpoints=folder, max_rows=settings.spark_max_rows, most=settings.external_jobs)

    def wanted(self) -> list[JobQuery]:
        """Return a query for each job that is neither paused nor finished, oldest first, up to the limit.

        The key of a query changes whenever its job does.
        """
        found = sorted(self._store.wanted_jobs(), key=lambda row: row.stream_id)[: self._most]
        queries = [
            JobQuery(self._url, row, checkpoints=self._checkpoints, max_rows=self._max_rows) for row in found
        ]
        names = {query.name for query in queries}
        if self._names - names:
            self._tidied_at = None
        self._names = names
        return queries

    def tidy(self, spark: SparkSession) -> None:
        """Remove the checkpoints of dropped or replaced versions, whose queries have ended."""
        if self._tidied_at is not None and monotonic() < self._tidied_at + TIDY_SECONDS:
            return
        self._tidied_at = monotonic()
        jvm: Any = spark._jvm
        folder = jvm.org.apache.hadoop.fs.Path(self._checkpoints)
        try:
            files = folder.getFileSystem(spark._jsc.hadoopConfiguration())
            found = [each.getPath() for each in files.listStatus(folder)] if files.exists(folder) else []
            matches = {path: re.fullmatch(r"(\d+)-(\d+)", path.getName()) for path in found}
            paths = {(int(match[1]), int(match[2])): path for path, match in matches.items() if match}
            for job in self._store.ended_jobs(list(paths)) if paths else []:
                files.delete(paths[job], True)
                log.info("removed the checkpoint of job %d, version %d, which no longer exists", *job)
        except Py4JJavaError as error:
            log.warning("could not remove the checkpoints of dropped jobs: %s", error.java_exception)

    def close(self) -> None:
        """Disconnect."""
        self._store.close()
