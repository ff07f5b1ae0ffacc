"""SQL over HTTP as Python calls, and the pipeline's writes about jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import msgspec

from tests.database import connect
from tests.wire.api import Api, Json, responded

FAILURE = """INSERT INTO queenspark.stream_failures
    (stream_id, version, bucket, run, batch, txid, id, tick, error)
SELECT id, version, %s, 'run', 1, %s, %s, 0, %s FROM queenspark.streams WHERE id = %s"""


class Sql:
    """Statements against one broker."""

    def __init__(self, api: Api) -> None:
        assert api.database_url is not None
        self.api = api
        self.database_url = api.database_url

    def post(self, sql: str, **more: Any) -> httpx2.Response:
        """Send statements."""
        return self.api.post("/api/v1/sql", {"sql": sql, **more})

    def __call__(self, sql: str, **more: Any) -> list[Json]:
        """Run statements that must succeed; return their results."""
        results: list[Json] = responded(self.post(sql, **more), 200)["results"]
        return results

    def one(self, sql: str, **more: Any) -> Json:
        """The result of one statement."""
        (result,) = self(sql, **more)
        return result

    def refused(self, sql: str) -> tuple[str, int, int]:
        """The error of statements that must be refused, with line and column."""
        error = responded(self.post(sql), 400)
        assert error["code"] == "sql_error", error
        return error["error"], error["line"], error["column"]

    def table(self, sql: str) -> list[Json]:
        """The rows of a result, each by column name."""
        result = self.one(sql)
        names = [column["name"] for column in result["columns"]]
        return [dict(zip(names, row, strict=True)) for row in result["rows"]]

    def job(self, name: str) -> Json:
        """A job over HTTP."""
        return self.api.read(f"/api/v1/jobs/{name}")

    # The pipeline's reads and writes

    def run(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement of the test's own to the database."""
        with connect(self.database_url) as connection:
            cursor = connection.execute(statement.encode(), params)
            return cursor.fetchall() if cursor.description else []

    def stream(self, name: str) -> tuple[int, int, int]:
        """The id, the queue's id and the version of a job."""
        found = self.run(
            "SELECT s.id, s.queue_id, s.version FROM queenspark.streams s JOIN queenspark.queues q"
            " ON q.id = s.queue_id WHERE q.name = %s",
            name,
        )
        assert found, f"there is no job {name}"
        return found[0]

    def bodies(self, name: str) -> list[tuple[int, Json]]:
        """All definitions of a job, in order: version and body."""
        stream_id, _, _ = self.stream(name)
        return self.run(
            "SELECT version, computing FROM queenspark.definitions WHERE stream_id = %s ORDER BY seq",
            stream_id,
        )

    def body(self, name: str) -> Json:
        """The newest body of a job."""
        return self.bodies(name)[-1][1]

    def fail(self, name: str, error: str, position: tuple[int, int] = (1, 1), bucket: int = 0) -> None:
        """Mark a job as failed, as the pipeline does."""
        self.run(FAILURE, bucket, *position, error, self.stream(name)[0])

    def make_unplannable(self, name: str, select: str, *, statement: bool = True) -> None:
        """Store a query that this release cannot plan, as a newer one may have."""
        texts = {"select": select, "statement": f"CREATE STREAM {name} AS {select}"}
        for part in texts if statement else ["select"]:
            self.run(
                "UPDATE queenspark.definitions"
                " SET computing = jsonb_set(computing, %s::text[], to_jsonb(%s::text)) WHERE stream_id = %s",
                ["query", part], texts[part], self.stream(name)[0],
            )  # fmt: skip

    def emit(self, queue: str, *payloads: str, partition: str = "p") -> None:
        """Push rows into a job's queue, as the pipeline does."""
        with connect(self.database_url) as connection:
            for payload in payloads:
                connection.execute(
                    "WITH q AS (SELECT id FROM queenspark.queues WHERE name = %(queue)s), made AS ("
                    "INSERT INTO queenspark.partitions (queue_id, name) SELECT id, %(partition)s FROM q"
                    " ON CONFLICT (queue_id, name) DO UPDATE SET name = excluded.name RETURNING id)"
                    " INSERT INTO queenspark.messages"
                    " (txid, id, partition_id, created_at, queue_id, transaction_id, payload)"
                    " SELECT pg_current_xact_id()::text::bigint, nextval('queenspark.message_blocks') * 1000,"
                    " made.id, clock_timestamp(), q.id, gen_random_uuid()::text, %(payload)s FROM q, made",
                    {"queue": queue, "partition": partition, "payload": payload},
                )

    def temporary_queues(self) -> list[str]:
        """The queues of running SELECTs."""
        rows = self.run(
            "SELECT q.name FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id"
            " WHERE s.expires_at IS NOT NULL"
        )
        return [row[0] for row in rows]

    @contextmanager
    def select(self, sql: str, **more: Any) -> Iterator[Iterator[Any]]:
        """The lines of a SELECT, as they come."""
        with self.api.http.stream("POST", "/api/v1/sql", json={"sql": sql, **more}) as response:
            assert response.status_code == 200, response.read()
            assert response.headers["content-type"] == "application/x-ndjson"
            yield (msgspec.json.decode(line) for line in response.iter_lines() if line)
