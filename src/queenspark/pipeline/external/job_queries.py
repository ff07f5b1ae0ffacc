"""The queries of jobs that should run now, as the definitions say."""

from __future__ import annotations

from ...settings import Settings
from ...store.pipeline import PipelineStore
from .job_query import JobQuery


class JobQueries:
    """Finds out which jobs need a query of their own."""

    def __init__(self, url: str, *, checkpoints: str, max_rows: int, most: int) -> None:
        self._url = url
        self._checkpoints = checkpoints
        self._max_rows = max_rows
        self._most = most
        self._store = PipelineStore(url)

    @classmethod
    def of(cls, settings: Settings, url: str) -> JobQueries:
        """The queries as the settings want them."""
        streams = settings.spark_checkpoint
        folder = (
            f"{streams.rstrip('/')}-jobs"
            if streams
            else str(settings.data_dir.absolute() / "checkpoint" / "jobs")
        )
        return cls(url, checkpoints=folder, max_rows=settings.spark_max_rows, most=settings.external_jobs)

    def wanted(self) -> list[JobQuery]:
        """A query for each job that is neither paused nor finished, the oldest first; no more than allowed.

        Its key changes with every change of its job.
        """
        found = sorted(self._store.wanted_jobs(), key=lambda row: row.stream_id)[: self._most]
        return [
            JobQuery(self._url, row, checkpoints=self._checkpoints, max_rows=self._max_rows) for row in found
        ]

    def close(self) -> None:
        """Disconnect."""
        self._store.close()
