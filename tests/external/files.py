"""Files, statements over them, and the queries of jobs, as Python calls."""

import json
from pathlib import Path
from typing import Any

from queenspark.store.definitions import Definition
from queenspark.store.pipeline import PipelineStore
from tests.jobs.system import Jobs
from tests.pipeline.streams.local import LocalJob


class Files(Jobs):
    """One broker; each job is run in this process by its own query."""

    folder: Path

    def write(self, name: str, *records: Any) -> Path:
        """Write a file of JSON lines, or of lines of text."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def source(self, columns: str = "", name: str = "s", **options: str) -> str:
        """CREATE SOURCE over the folder."""
        given = {"connector": "files", "path": str(self.folder), "mode": "once", **options}
        listed = ", ".join(f"{key} = '{value}'" for key, value in given.items())
        return f"create source {{{name}}} {f'({columns})' if columns else ''} with ({listed});"

    def query(self, name: str, **limits: int) -> LocalJob:
        """The query of a job."""
        return LocalJob(self.database_url, self.wanted()[self.name(name)], **limits)

    def wanted(self) -> dict[str, Definition]:
        """The jobs that the pipeline should run, by name."""
        with PipelineStore(self.database_url) as store:
            return {row.body.name: row for row in store.wanted_jobs()}

    def run_job(self, name: str, **limits: int) -> int:
        """Run a job until there is nothing to do; return the number of batches."""
        query = self.query(name, **limits)
        count = query.drain()
        query.close()
        return count
