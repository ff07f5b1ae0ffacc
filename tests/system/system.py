"""A broker and a pipeline over one database, and streams of one's own in it."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.system.pipeline_process import PipelineProcess
from tests.windows.oracle import Record, Row, Spec, Tick, expected_output
from tests.wire.api import Api, Json, responded

GLOBAL = "__GLOBAL__"
FAR_AWAY = 10**15  # microseconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def own_system(server: PostgresServer, folder: Path, **settings: Any) -> Iterator["System"]:
    """A broker and a pipeline of the test's own, to be killed or filled; gone afterwards."""
    with server.database() as url:
        broker = Broker(url, folder / "broker.log", **settings)
        pipeline = PipelineProcess(url, folder / "pipeline")
        pipeline.start()
        try:
            with Api(broker.url, url) as api:
                yield System(api, url, pipeline)
        finally:
            pipeline.kill()
            broker.stop()


def microseconds(text: str) -> int:
    """A time of the wire."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


@dataclass
class Stream:
    """A stream as a test has defined it."""

    name: str
    queues: list[str]
    id: int
    partitioned: bool
    spec: Spec
    event_time: str | None = None
    defined: Json = field(default_factory=dict)


class System:
    """The user's view of a running system."""

    def __init__(self, api: Api, database_url: str, pipeline: PipelineProcess) -> None:
        self.api = api
        self.database_url = database_url
        self.pipeline = pipeline

    def run(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement of the test's own."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, params or None)
            return cursor.fetchall() if cursor.description else []

    def define(
        self,
        kind: str,
        *,
        queues: int = 1,
        partitioned: bool = True,
        grace_ms: int = 0,
        event_time: str | None = None,
        name: str | None = None,
        sources: Sequence[str] | None = None,
        **fields: Any,
    ) -> Stream:
        """Define a stream over queues of its own, or over given ones."""
        tag = uuid4().hex[:8]
        names = list(sources) if sources else [f"q{number}-{tag}" for number in range(queues)]
        for queue in names:
            self.api.configure(queue)
        body = {
            "name": name or f"s-{tag}", "namespace": "tests", "source_queue_names": names,
            "partitioned": partitioned, "window_type": kind, "window_grace_period_ms": grace_ms,
            "event_time": event_time, **fields,
        }  # fmt: skip
        given = {key: value for key, value in body.items() if value is not None}
        found = responded(self.api.post("/api/v1/stream/define", given), 201)
        return Stream(
            str(body["name"]), names, int(found["stream_id"]), partitioned, spec_of(given), event_time, given
        )

    def records(
        self,
        stream: Stream,
        event_us: Callable[[Any], int | None] | None = None,
        value: Callable[[Any], int] | None = None,
    ) -> list[Record]:
        """All messages of a stream's queues as the oracle wants them, in log order."""
        rows = self.run(
            "SELECT m.txid, m.id, m.queue_id, p.name, (extract(epoch FROM m.created_at) * 1000000)::bigint,"
            " m.payload::jsonb FROM queenspark.messages m"
            " JOIN queenspark.partitions p ON p.id = m.partition_id"
            " JOIN queenspark.queues q ON q.id = m.queue_id WHERE q.name = ANY (%s) ORDER BY m.txid, m.id",
            stream.queues,
        )
        return [
            Record(
                stream.id,
                partition if stream.partitioned else GLOBAL,
                txid,
                id_,
                created,
                event_us(payload) if event_us is not None else None,
                {"n": value(payload)} if value is not None else {},
                queue_id,
            )
            for txid, id_, queue_id, partition, created, payload in rows
        ]

    def now_us(self) -> int:
        """The database's clock."""
        ((now,),) = self.run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(now)

    def expected(
        self, stream: Stream, records: list[Record], tick_us: int | None = None, version: int = 1
    ) -> list[Row]:
        """The windows that the oracle sees once safe time has reached `tick_us`, or far beyond."""
        tick = Tick(self.now_us() + FAR_AWAY if tick_us is None else tick_us)
        own = [replace(record, version=version) for record in records]
        return expected_output({(stream.id, version): stream.spec}, [*own, tick]).rows

    def redefine(self, stream: Stream, **fields: Any) -> Stream:
        """Define a stream again: as it was, but for these fields."""
        wanted = {**stream.defined, **fields}
        given = {key: value for key, value in wanted.items() if value is not None}
        responded(self.api.post("/api/v1/stream/define", given), 201)
        return replace(
            stream, queues=given["source_queue_names"], partitioned=given["partitioned"],
            spec=spec_of(given), defined=given,
        )  # fmt: skip

    def sealed(self, stream: Stream) -> list[Json]:
        """The windows in a stream's window queue, in log order."""
        rows = self.run(
            "SELECT m.payload::jsonb FROM queenspark.messages m"
            " JOIN queenspark.streams s ON s.queue_id = m.queue_id WHERE s.id = %s ORDER BY m.txid, m.id",
            stream.id,
        )
        return [row[0] for row in rows]

    def poll(self, stream: Stream, group: str = "g", timeout: int = 1000, **more: Any) -> Json | None:
        """One window, or None."""
        body = {"streamName": stream.name, "consumerGroup": group, "timeout": timeout, **more}
        response = self.api.post("/api/v1/stream/poll", body)
        return None if response.status_code == 204 else responded(response, 200)["window"]

    def ack(self, window: Json, *, success: bool = True) -> None:
        """Ack a window."""
        body = {"windowId": window["id"], "leaseId": window["leaseId"], "success": success}
        assert responded(self.api.post("/api/v1/stream/ack", body), 200)["acked"]

    def drain(self, stream: Stream, count: int, group: str = "g", within: float = 60.0) -> list[Json]:
        """Poll and ack windows up to this many."""
        windows: list[Json] = []
        deadline = time.monotonic() + within
        while len(windows) < count and time.monotonic() < deadline:
            window = self.poll(stream, group)
            if window is not None:
                self.ack(window)
                windows.append(window)
        return windows

    def take_all(self, stream: Stream, count: int, group: str = "g") -> list[Json]:
        """Poll and ack this many windows; there must be no more."""
        windows = self.drain(stream, count, group)
        assert len(windows) == count
        assert self.poll(stream, group, timeout=500) is None
        return windows

    def wait_for(self, stream: Stream, count: int, within: float = 60.0) -> list[Json]:
        """Wait until this many windows are sealed."""
        deadline = time.monotonic() + within
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            while _count_sealed(connection, stream) < count and time.monotonic() < deadline:
                time.sleep(0.05)
        return self.sealed(stream)


def _count_sealed(connection: psycopg.Connection[tuple[Any, ...]], stream: Stream) -> int:
    row = connection.execute(
        "SELECT count(*) FROM queenspark.messages m JOIN queenspark.streams s ON s.queue_id = m.queue_id"
        " WHERE s.id = %s",
        (stream.id,),
    ).fetchone()
    assert row is not None
    return int(row[0])


def spec_of(defined: Json) -> Spec:
    """The oracle's spec of a definition of the wire."""
    grace = defined["window_grace_period_ms"] * 1000
    idle = max(grace, 10_000_000)
    if "idle_timeout_ms" in defined:
        idle = defined["idle_timeout_ms"] * 1000
    names = {
        "duration_us": "window_duration_ms", "slide_us": "window_slide_ms", "gap_us": "window_gap_ms",
    }  # fmt: skip
    return Spec(
        kind=defined["window_type"],
        clock="event" if "event_time" in defined else "ingest",
        grace_us=grace,
        idle_us=idle,
        late=defined.get("late", "process"),
        keep_us=max(600_000_000, idle),
        emit_empty=defined.get("emit_empty", False),
        size=defined.get("window_size_count"),
        step=defined.get("window_slide_count"),
        **{field: defined[name] * 1000 for field, name in names.items() if name in defined},
    )


def as_rows(windows: Iterable[Json]) -> list[tuple[Any, ...]]:
    """Windows of a window queue, to compare with those of the oracle."""
    return sorted(
        (
            window["key"], window["id"], window["start"], window["end"], window["count"], window["revision"],
            tuple(tuple(source) for source in window["sources"]), tuple(sorted(window["replaces"])),
        )
        for window in windows
    )  # fmt: skip


def oracle_rows(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """The same of the oracle's."""
    return sorted(
        (
            row.key, row.window_id, row.start_us, row.end_us, row.count, row.revision, row.sources,
            row.replaces,
        )
        for row in rows
    )  # fmt: skip
