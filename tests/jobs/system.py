"""Statements, messages and the pipeline of one broker, as Python calls."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec

from queenspark.pipeline.streams import stream_source
from tests.database import connect
from tests.pipeline.streams.local import LocalPipeline
from tests.wire.api import Api, responded
from tests.wire.sql import Sql

_ROWS = """SELECT p.name, m.transaction_id, m.payload, m.headers
FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id
JOIN queenspark.partitions p ON p.id = m.partition_id
WHERE q.name = %s ORDER BY m.txid, m.id"""


class Row(NamedTuple):
    """A row of a job, as the log has it."""

    partition: str
    id: str
    data: dict[str, Any]
    headers: dict[str, str]


class Jobs:
    """One broker with a pipeline in this process; names get a tag, so that tests can share it."""

    def __init__(self, url: str, database_url: str, **pipeline: Any) -> None:
        stream_source.WAIT_SECONDS = 0.02
        self.api = Api(url, database_url)
        self.sql = Sql(self.api)
        self.database_url = database_url
        self.pipeline = LocalPipeline(database_url, **pipeline)
        self.tag = ""

    def begin(self) -> None:
        """Take names that no test has used."""
        self.tag = uuid4().hex[:8]

    def forget(self) -> None:
        """Delete all jobs, which the pipeline would go on running with every batch."""
        while jobs := self.api.read("/api/v1/jobs")["jobs"]:
            responded(self.api.delete(f"/api/v1/jobs/{jobs[0]['queue']}", cascade=True), 200)

    def name(self, name: str) -> str:
        """A name with the tag of the test."""
        return f"{name}_{self.tag}"

    def run(self, statement: str) -> list[dict[str, Any]]:
        """Statements, with tagged names in braces."""
        return self.sql(self._tagged(statement))

    def refused(self, statement: str) -> str:
        """The error of statements that must be refused."""
        return self.sql.refused(self._tagged(statement))[0]

    def _tagged(self, statement: str) -> str:
        return statement.replace("{", "").replace("}", f"_{self.tag}")

    def push(self, queue: str, payloads: Sequence[Any], partition: str | None = None) -> None:
        """Push payloads as one batch."""
        self.api.push(self.name(queue), *payloads, **({} if partition is None else {"partition": partition}))

    def drain(self) -> int:
        """Run the pipeline until it has read everything."""
        return self.pipeline.drain()

    def rows(self, name: str) -> list[Row]:
        """The rows of a job, in log order."""
        with connect(self.database_url) as connection:
            found = connection.execute(_ROWS, (self.name(name),)).fetchall()
        return [
            Row(partition, id_, msgspec.json.decode(payload), msgspec.json.decode(headers or "{}"))
            for partition, id_, payload, headers in found
        ]

    def data(self, name: str) -> list[dict[str, Any]]:
        """The payloads of a job's rows, in log order."""
        return [row.data for row in self.rows(name)]

    def dead(self, name: str) -> list[dict[str, Any]]:
        """The dead records of a job."""
        found: list[dict[str, Any]] = self.api.read(f"/api/v1/jobs/{self.name(name)}/dead")["dead"]
        return found

    def job(self, name: str) -> dict[str, Any]:
        """A job as the broker shows it."""
        return self.sql.job(self.name(name))

    def close(self) -> None:
        """Disconnect."""
        self.pipeline.close()
        self.api.http.close()
