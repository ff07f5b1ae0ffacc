"""`GET /api/v1/resources/streams/:stream/explain`: why the next window is not sealed yet."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from queenspark.pipeline.streams import stream_source
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.leader import LEAD
from tests.pipeline.streams.local import LocalPipeline
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api, Json, responded
from tests.wire.deadline import eventually
from tests.wire.document import Document

HOUR_MS = 3_600_000


class Stream(StreamApi):
    """A stream whose pipeline runs in this process, batch by batch."""

    def __init__(self, api: Api, broker: Broker, pipeline: LocalPipeline) -> None:
        super().__init__(api, broker.database_url)
        self.local = pipeline

    def explain(self) -> Json:
        return self.resource("explain")

    def first(self) -> Json:
        """The most likely reason."""
        reason: Json = self.explain()["reasons"][0]
        return reason

    def codes(self) -> list[str]:
        return [reason["code"] for reason in self.explain()["reasons"]]

    def read(self) -> None:
        """Run the pipeline until it has read everything."""
        self.local.drain()

    @contextmanager
    def open_transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction that has written, and stays open."""
        with psycopg.connect(self.database_url, application_name="nightly report") as connection:
            connection.execute("SELECT pg_current_xact_id()")
            yield connection


@pytest.fixture(scope="module")
def running(module_broker: StartBroker) -> Iterator[tuple[Broker, LocalPipeline]]:
    stream_source.WAIT_SECONDS = 0.02
    broker = module_broker()
    pipeline = LocalPipeline(broker.database_url)
    yield broker, pipeline
    pipeline.close()


@pytest.fixture
def stream(running: tuple[Broker, LocalPipeline]) -> Iterator[Stream]:
    """A stream that is not defined yet; a pipeline leads."""
    broker, pipeline = running
    with Api(broker.url) as api:
        api.http.event_hooks = {"response": [Document(api.read("/openapi.json")).check]}
        stream = Stream(api, broker, pipeline)
        stream.run(LEAD)
        yield stream
        stream.run("DELETE FROM queenspark.pipeline_stats")
        api.delete(f"/api/v1/resources/streams/{stream.name}")
        stream.close()


def at(text: str | None) -> datetime:
    assert text is not None
    return datetime.fromisoformat(text)


def test_a_missing_stream_is_404(stream: Stream) -> None:
    assert stream.api.get("/api/v1/resources/streams/none/explain").status_code == 404


def test_no_pipeline_leads(stream: Stream) -> None:
    stream.define()
    stream.push(1)
    stream.run("UPDATE queenspark.pipeline SET expires_at = '2026-01-31T12:00:00Z'")
    response = stream.explain()
    assert (response["stream"], response["namespace"], response["version"]) == (stream.name, "tests", 1)
    reason = response["reasons"][0]
    assert (reason["code"], reason["since"]) == ("no_pipeline", "2026-01-31T12:00:00.000Z")
    assert "no standby has taken over" in reason["text"]
    assert "queenspark pipeline" in reason["fix"]


def test_a_pipeline_has_stopped_leading_just_now(stream: Stream) -> None:
    stream.define()
    stream.run("UPDATE queenspark.pipeline SET expires_at = now() - interval '1 second'")
    assert "a standby, if one is running, takes over" in stream.first()["text"]
    stream.run("UPDATE queenspark.pipeline SET holder = NULL, expires_at = NULL")
    assert stream.first()["code"] == "no_pipeline", "it has resigned"


def test_the_query_of_the_pipeline_fails(stream: Stream) -> None:
    stream.define()
    stream.run(
        "INSERT INTO queenspark.pipeline_stats (key, value) VALUES ('streams',"
        """ '{"state": "restarting", "error": "disk full"}')"""
    )
    reason = stream.first()
    assert reason["code"] == "pipeline_failing"
    assert reason["text"].endswith("me fails and is restarted: disk full")


def test_the_pipeline_has_not_read_the_definition(stream: Stream) -> None:
    stream.define()
    assert stream.codes()[0] == "not_started"
    stream.read()
    assert "not_started" not in stream.codes()


def test_a_window_has_not_ended(stream: Stream) -> None:
    stream.define(partitioned=True, window_duration_ms=HOUR_MS, window_grace_period_ms=60_000)
    first, *_ = stream.push(1, 2, partition="anna")
    stream.push(3, partition="ben")
    stream.read()
    response = stream.explain()
    (reason,) = response["reasons"]
    assert reason["code"] == "grace"
    window = response["next"]
    assert (window["key"], window["records"]) == ("anna", 2)
    created = datetime.fromtimestamp(first.created_us / 1e6, UTC)
    assert at(window["start"]) <= created < at(window["end"])
    assert at(window["end"]) - at(window["start"]) == timedelta(hours=1)
    assert at(window["sealedAtAbout"]) - at(window["end"]) == timedelta(minutes=1)
    assert reason["until"] == window["sealedAtAbout"]
    assert f"has not ended yet; it ends at {window['end']}" in reason["text"]
    assert response["sealed"]["openWindows"] == 2


def test_a_window_waits_for_its_grace(stream: Stream) -> None:
    stream.define(window_duration_ms=1, window_grace_period_ms=HOUR_MS)
    stream.push(1)
    stream.read()
    reason = stream.first()
    assert reason["code"] == "grace"
    assert "has ended and waits for its grace of 1h" in reason["text"]
    assert stream.explain()["next"]["key"] == "__GLOBAL__"


def test_a_session_ends_with_silence(stream: Stream) -> None:
    stream.define(window_type="session", window_gap_ms=HOUR_MS, window_grace_period_ms=0)
    records = stream.push(1, 2)
    stream.read()
    response = stream.explain()
    assert response["next"]["records"] == 2
    ends = records[-1].created_us / 1e6 + 3600
    assert at(response["next"]["end"]).timestamp() == pytest.approx(ends, abs=0.01)
    assert "a session ends after 1h of inactivity" in response["reasons"][0]["text"]


def test_the_event_time_of_a_key_is_behind(stream: Stream) -> None:
    stream.define(
        partitioned=True, event_time="at", window_duration_ms=60_000, window_grace_period_ms=30_000,
        idle_timeout_ms=HOUR_MS,
    )  # fmt: skip
    (slow,) = stream.push({"at": "2026-01-31T12:00:10Z"}, partition="slow")
    stream.push({"at": "2026-01-31T12:05:00Z"}, partition="fast")
    stream.push({"no": "time"}, partition="dead")
    stream.read()
    response = stream.explain()
    assert response["next"] | {"sealedAtAbout": None} == {
        "key": "slow", "start": "2026-01-31T12:00:00.000Z", "end": "2026-01-31T12:01:00.000Z", "records": 1,
        "newestTime": "2026-01-31T12:00:10.000Z", "sealedAtAbout": None,
    }  # fmt: skip
    reason = response["reasons"][0]
    assert reason["code"] == "watermark"
    assert (
        "the newest is 2026-01-31T12:00:10.000Z, and a record at 2026-01-31T12:01:30.000Z or later"
        " (its end plus the grace of 30s) seals it"
    ) in reason["text"]
    idle = datetime.fromtimestamp(slow.created_us / 1e6, UTC) + timedelta(hours=1)
    assert abs(at(reason["until"]) - idle) < timedelta(milliseconds=2)
    assert "idle timeout (1h)" in reason["fix"]
    stream.push({"at": "2026-01-31T12:02:00Z"}, partition="slow")
    stream.read()
    response = stream.explain()
    assert response["sealed"]["windows"] == 1, "the record has sealed it"
    assert (response["next"]["key"], response["next"]["start"]) == ("slow", "2026-01-31T12:02:00.000Z")


def test_a_sliding_window_that_began_before_its_record(stream: Stream) -> None:
    stream.define(
        window_type="sliding", event_time="at", window_duration_ms=60_000, window_slide_ms=20_000,
        window_grace_period_ms=0, idle_timeout_ms=HOUR_MS,
    )  # fmt: skip
    stream.push({"at": "2026-01-31T12:00:10Z"}, {"at": "2026-01-31T12:00:25Z"})
    stream.read()
    found = stream.explain()["next"]
    assert (found["start"], found["end"], found["records"]) == (
        "2026-01-31T11:59:40.000Z", "2026-01-31T12:00:40.000Z", 2,
    )  # fmt: skip


def test_a_count_window_lacks_records(stream: Stream) -> None:
    stream.define(partitioned=True, window_type="count", window_size_count=3)
    stream.push(1, 2, 3, partition="full")
    stream.push(4, 5, partition="anna")
    stream.push(6, partition="ben")
    stream.read()
    response = stream.explain()
    assert (response["next"]["key"], response["next"]["records"], response["next"]["end"]) == (
        "anna",
        2,
        None,
    )
    (reason,) = response["reasons"]
    assert (reason["code"], reason["text"]) == ("count", "the window of key anna has 2 of 3 records")
    assert reason["fix"].startswith("push 1 more record of key anna;")
    assert response["sealed"]["windows"] == 1


def test_no_record_has_come(stream: Stream) -> None:
    stream.define()
    stream.read()
    reason = stream.first()
    assert (reason["code"], reason["text"]) == (
        "no_records", f"no record has arrived: {stream.queue} has no messages",
    )  # fmt: skip
    assert stream.explain()["next"] is None


def test_all_messages_lie_before_the_start(stream: Stream) -> None:
    stream.push(1)
    stream.define(start="latest")
    stream.read()
    assert stream.first()["code"] == "no_records"
    assert "are before the start of the stream (latest)" in stream.first()["text"]


def test_all_records_are_dead(stream: Stream) -> None:
    stream.define(event_time="at")
    stream.push({"no": "time"})
    stream.read()
    reason = stream.first()
    assert (reason["code"], reason["text"]) == (
        "dead_records", "every record so far is dead (1 record): they have no usable event time",
    )  # fmt: skip
    assert reason["fix"] == f"list them with GET /api/v1/resources/streams/{stream.name}/dead"


def test_no_window_is_open(stream: Stream) -> None:
    stream.define(window_type="count", window_size_count=1)
    stream.push(1)
    stream.read()
    reason = stream.first()
    assert reason["code"] == "nothing_open"
    assert reason["since"] == stream.explain()["sealed"]["lastAt"]


def test_an_open_transaction_hides_messages(stream: Stream) -> None:
    stream.define()
    stream.read()
    with stream.open_transaction() as holder:
        pid = holder.info.backend_pid
        stream.push(1, 2)
        eventually(lambda: stream.first()["code"] == "open_transaction")
        reason = stream.first()
        assert f"nightly report (pid {pid}), idle in transaction, has held back the horizon" in reason["text"]
        assert reason["text"].endswith(", and hides 2 messages pushed since then")
        assert f"pg_terminate_backend({pid})" in reason["fix"]
        assert at(reason["since"]) < datetime.now(UTC) - timedelta(seconds=1)
    stream.read()
    assert "open_transaction" not in stream.codes()


def test_an_open_transaction_holds_safe_time_back(stream: Stream) -> None:
    stream.define(window_duration_ms=1, window_grace_period_ms=2500)
    stream.push(1)
    stream.read()
    assert stream.first()["code"] == "grace"
    with stream.open_transaction():
        eventually(lambda: stream.first()["code"] == "open_transaction")
        response = stream.explain()
        assert at(response["next"]["sealedAtAbout"]) < datetime.now(UTC)


def test_safe_time_is_behind_without_a_holder(stream: Stream) -> None:
    stream.define(window_duration_ms=1, window_grace_period_ms=1000)
    stream.push(1)
    stream.read()
    with psycopg.connect(stream.database_url) as connection:
        # Brokers cannot note the time.
        connection.execute("LOCK TABLE queenspark.looks IN SHARE ROW EXCLUSIVE MODE")
        eventually(lambda: stream.first()["code"] == "safe_time")
        reason = stream.first()
        assert "no open transaction visible to this broker" in reason["text"]


def test_a_due_window_is_sealed_with_the_next_batch(stream: Stream) -> None:
    stream.define(window_duration_ms=1, window_grace_period_ms=300)
    stream.push(1)
    stream.local.batch()
    eventually(lambda: stream.codes() == ["sealing"])

    def is_sealed() -> bool:
        stream.read()
        return stream.codes() == ["nothing_open"]

    eventually(is_sealed)


def test_a_stream_is_behind(stream: Stream) -> None:
    stream.define()
    stream.read()
    stream.push(1, 2, 3)
    stream.run(
        "UPDATE queenspark.messages m SET created_at = now() - interval '90 seconds' FROM queenspark.queues q"
        " WHERE q.id = m.queue_id AND q.name = %s",
        stream.queue,
    )
    reason = stream.first()
    assert reason["code"] == "behind"
    assert reason["text"].endswith("s behind: 3 messages unread")
    assert int(reason["text"].split()[2]) in range(90, 120)


def test_a_source_is_gone(stream: Stream) -> None:
    stream.define()
    stream.read()
    stream.api.delete(f"/api/v1/resources/queues/{stream.queue}")
    reason = stream.first()
    assert (reason["code"], reason["text"]) == (
        "source_gone", f"the source {stream.queue} does not exist: its queue was deleted",
    )  # fmt: skip


def test_retention_has_removed_the_first_record_of_a_window(stream: Stream) -> None:
    stream.define(window_duration_ms=HOUR_MS)
    first, _ = stream.push(1, 2)
    stream.read()
    stream.run("DELETE FROM queenspark.messages WHERE (txid, id) = (%s, %s)", *first.position)
    response = stream.explain()
    assert [reason["code"] for reason in response["reasons"]] == ["grace", "retention"]
    assert response["next"]["records"] == 1
    stream.run("DELETE FROM queenspark.messages")
    assert stream.codes() == ["unknown", "retention"]


def test_windows_of_the_version_before_come_first(stream: Stream) -> None:
    stream.define(window_duration_ms=HOUR_MS)
    stream.push(1)
    stream.read()
    stream.define(window_duration_ms=2 * HOUR_MS)
    stream.read()
    response = stream.explain()
    assert response["version"] == 1
    assert response["reasons"][0]["code"] == "grace"


def test_a_broker_without_the_key_cannot_tell_the_next_window(
    stream: Stream, module_broker: StartBroker
) -> None:
    key = b64encode(bytes(32)).decode()
    with Api(module_broker(encryption_key=key).url) as with_key:
        with_key.configure(stream.queue, encryptionEnabled=True)
        assert responded(stream.try_define(window_duration_ms=HOUR_MS), 201)
        with_key.push(stream.queue, 1)
        stream.read()
        path = f"/api/v1/resources/streams/{stream.name}/explain"
        assert with_key.read(path)["next"]["records"] == 1
    assert stream.codes() == ["unknown"]
