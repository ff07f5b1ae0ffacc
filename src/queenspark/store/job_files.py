"""The input files of a job, in order of discovery; synchronous, for Spark's processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .errors import LostLeadership
from .log import LogReader
from .progress import Stream
from .queries import query


class FileEntry(NamedTuple):
    """A file with its size and time at discovery."""

    number: int
    path: str
    bytes: int
    modified_us: int


class JobFiles(LogReader):
    """The file list of one job version: append-only, with stable numbers."""

    def __init__(self, url: str, job: Stream, epoch: int) -> None:
        super().__init__(url)
        self._job = {"stream_id": job[0], "version": job[1]}
        self._epoch = epoch

    def since(self, number: int) -> list[FileEntry]:
        """Return the files from a number on."""
        rows = self._rows(query("job_files"), {**self._job, "from": number})
        return [FileEntry(*row) for row in rows]

    def add(self, files: Sequence[tuple[str, int, int]]) -> None:
        """Append paths with their size and time, in this order. Raises LostLeadership."""
        paths, sizes, times = zip(*files, strict=True)
        columns = {"paths": list(paths), "bytes": list(sizes), "modified_us": list(times)}
        params = {**self._job, **columns, "epoch": self._epoch}
        ((leads,),) = self._rows(query("add_job_files"), params)
        if not leads:
            raise LostLeadership(f"epoch {self._epoch} has ended; no files are added")
