"""Windows with their messages: which records between a window's positions are in it, and which are not."""

from datetime import UTC, datetime

import pytest

from tests.conftest import StartBroker
from tests.streams.sealing import MINUTE, Sealed, minute
from tests.streams.stream_api import StreamApi, data_of
from tests.wire.api import Api, Json, refused, responded

NOON = 1_769_860_800_000  # 2026-01-31T12:00:00Z
GLOBAL = "__GLOBAL__"


def test_a_window_by_ingest_time_has_the_records_created_in_it(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    before, *inside, after = stream.push("before", 1, 2, "after")
    window = stream.over(inside)
    stream.seal(
        Sealed("p", window.start_us, window.end_us, [(before.queue_id, before.position, after.position)])
    )
    assert data_of(stream.poll()) == [1, 2]


def test_a_window_has_the_documented_fields(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    (record,) = stream.push({"a": [1, None]})
    stream.seal(stream.over([record], replaces=["x"], revision=2))
    window = stream.poll()
    (message,) = window["messages"]
    assert message["created_at"] == message["createdAt"]
    assert message["createdAt"].endswith("Z")
    assert (message["queue"], message["partition"]) == (stream.queue, "p")
    assert (window["count"], window["revision"], window["version"]) == (1, 2, 1)
    assert (window["namespace"], window["stream"]) == ("tests", stream.name)
    assert (window["replaces"], window["leaseTimeoutMs"]) == (["x"], 60_000)


def test_a_window_by_event_time_has_the_records_with_times_in_it(stream: StreamApi) -> None:
    stream.define(partitioned=True, event_time="data.at")
    times = [NOON, NOON - 1, "2026-01-31T12:00:59.999999Z", NOON + 60_000, None, "x", NOON + 5.5]
    records = stream.push(*({"at": time, "n": n} for n, time in enumerate(times)))
    start = NOON * 1000
    stream.seal(stream.over(records, start_us=start, end_us=start + MINUTE))
    window = stream.poll()
    assert [data["n"] for data in data_of(window)] == [0, 2, 6]


def test_pages_of_a_window_by_event_time_have_no_holes(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True, event_time="at")
    records = stream.push(*({"at": NOON + (n % 2) * 60_000, "n": n} for n in range(11)))
    stream.seal(stream.over(records, start_us=NOON * 1000, end_us=NOON * 1000 + MINUTE))
    window = stream.poll(maxMessages=2)
    found, cursor = data_of(window), window["nextCursor"]
    while cursor is not None:
        path = f"/api/v1/stream/window/{window['leaseId']}/messages"
        page = api.read(path, cursor=cursor, maxMessages=2)
        found, cursor = found + data_of(page), page["nextCursor"]
    assert [data["n"] for data in found] == [0, 2, 4, 6, 8, 10]


def test_a_count_window_has_the_records_between_its_positions(stream: StreamApi) -> None:
    stream.define(partitioned=True, window_type="count", window_size_count=3)
    records = stream.push(0, 1, 2, 3)
    stream.push("another key", partition="x")
    # The time of a count window is that of its first and its last record.
    stream.seal(stream.over(records[1:], end_us=records[3].created_us, suffix=":1-1"))
    assert data_of(stream.poll()) == [1, 2, 3]


def test_a_count_window_by_event_time_excludes_records_without_one(stream: StreamApi) -> None:
    stream.define(partitioned=True, window_type="count", window_size_count=2, event_time="at")
    records = stream.push({"at": NOON}, {"at": "never"}, {"at": NOON - 99_999})
    stream.seal(stream.over(records, start_us=NOON * 1000, end_us=NOON * 1000))
    assert [data["at"] for data in data_of(stream.poll())] == [NOON, NOON - 99_999]


def session_without_its_second_record(stream: StreamApi) -> Json:
    """Seal a session with its second record dropped; return that record's entry in the late log."""
    stream.define(partitioned=True, window_type="session", window_gap_ms=60_000, event_time="at", late="drop")
    records = stream.push({"at": NOON}, {"at": NOON + 1}, {"at": NOON + 2})
    txid, id_ = records[1].position
    late = {
        "stream": stream.id, "version": 1, "key": "p", "txid": txid, "id": id_, "time_us": 0, "closed_us": 0,
        "dropped": True,
    }  # fmt: skip
    stream.seal(stream.over(records, start_us=NOON * 1000, end_us=NOON * 1000 + MINUTE), late=[late])
    return late


def test_a_session_excludes_records_dropped_as_late(stream: StreamApi) -> None:
    session_without_its_second_record(stream)
    assert [data["at"] for data in data_of(stream.poll())] == [NOON, NOON + 2]
    assert data_of(stream.poll("g2", maxMessages=1)) == [{"at": NOON}]


def test_a_session_leaves_out_dropped_records_that_the_late_log_no_longer_lists(stream: StreamApi) -> None:
    session_without_its_second_record(stream)
    assert [data["at"] for data in data_of(stream.poll())] == [NOON, NOON + 2]
    stream.run("DELETE FROM queenspark.stream_late WHERE stream_id = %s", stream.id)
    assert [data["at"] for data in data_of(stream.poll("replay"))] == [NOON, NOON + 2]


def test_a_session_excludes_records_dropped_by_an_older_pipeline(stream: StreamApi) -> None:
    """It notes a dropped record in the late log only."""
    session_without_its_second_record(stream)
    stream.run("DELETE FROM queenspark.stream_dropped WHERE stream_id = %s", stream.id)
    assert [data["at"] for data in data_of(stream.poll())] == [NOON, NOON + 2]


def test_a_window_of_an_old_version_is_read_as_that_version_was(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    records = [*stream.push(1, partition="a"), *stream.push(2, partition="b")]
    stream.seal(stream.over(records, "a"))
    stream.define(partitioned=False)
    stream.seal(stream.over(records, GLOBAL, version=2))
    windows = responded(stream.try_poll(maxWindows=2), 200)["windows"]
    assert [data_of(window) for window in windows] == [[1], [1, 2]]


def test_messages_that_retention_removed_are_not_there(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    records = stream.push(1, 2)
    stream.seal(stream.over(records))
    stream.run("DELETE FROM queenspark.messages WHERE txid = %s", records[0].position[0])
    window = stream.poll()
    assert (data_of(window), window["count"]) == ([2], 2)


def test_a_window_at_the_end_of_time_can_be_shown(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(Sealed("k", 253_402_300_740_000_000, 253_402_300_800_000_000))
    assert stream.poll()["end"] == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize("cursor", ["x", "1", "1-", "-1-2", "1-2-3", "9" * 50])
def test_a_cursor_is_one_that_was_given(stream: StreamApi, api: Api, cursor: str) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1))
    window = stream.poll()
    response = api.get(f"/api/v1/stream/window/{window['leaseId']}/messages", cursor=cursor)
    assert "cursor" in refused(response, 400)


def test_encrypted_records_are_delivered_in_the_clear(broker: StartBroker) -> None:
    key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    secret = broker(encryption_key=key)
    with Api(secret.url) as api:
        stream = StreamApi(api, secret.database_url)
        api.configure(stream.queue, encryptionEnabled=True)
        assert stream.try_define(partitioned=True, event_time="at").status_code == 201
        ((stream.id, stream.queue_id),) = stream.run("SELECT id, queue_id FROM queenspark.streams")
        (record,) = stream.push({"at": NOON})
        window = stream.over([record], start_us=NOON * 1000, end_us=NOON * 1000 + 1)
        stream.seal(window)
        assert data_of(stream.poll()) == [{"at": NOON}]
        # A broker without the key gives the window back, so that one with the key can deliver it.
        stream.seek(0)
        blind = broker(database_url=secret.database_url)
        with Api(blind.url) as other:
            body = {"streamName": stream.name, "consumerGroup": "g", "timeout": 0}
            assert "QUEENSPARK_ENCRYPTION_KEY" in refused(other.post("/api/v1/stream/poll", body), 400)
        assert data_of(stream.poll()) == [{"at": NOON}]
        stream.close()


def test_messages_are_those_of_now(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    (record,) = stream.push(1)
    stream.seal(stream.over([record]))
    created = stream.poll()["messages"][0]["createdAt"]
    assert abs((datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds()) < 60


@pytest.mark.parametrize("partitioned", [True, False])
def test_the_messages_of_a_window_come_with_their_headers(stream: StreamApi, partitioned: bool) -> None:
    stream.define(partitioned=partitioned)
    records = [*stream.push(1, headers={"tenant": "north"}), *stream.push(2)]
    stream.seal(stream.over(records, key="p" if partitioned else GLOBAL))
    first, second = stream.poll()["messages"]
    assert first["headers"] == {"tenant": "north"}
    assert "headers" not in second
    window = stream.poll("pages", maxMessages=1)
    assert window["messages"][0]["headers"] == {"tenant": "north"}


@pytest.mark.parametrize("partitioned", [True, False])
def test_a_page_of_a_window_has_headers(stream: StreamApi, api: Api, partitioned: bool) -> None:
    stream.define(partitioned=partitioned)
    records = [*stream.push(1), *stream.push(2, headers={"tenant": "north"})]
    stream.seal(stream.over(records, key="p" if partitioned else GLOBAL))
    window = stream.poll(maxMessages=1)
    page = api.read(f"/api/v1/stream/window/{window['leaseId']}/messages", cursor=window["nextCursor"])
    assert page["messages"][0]["headers"] == {"tenant": "north"}


def test_a_window_can_be_polled_without_its_messages(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True)
    records = stream.push(1, 2, 3)
    stream.seal(stream.over(records))
    window = stream.poll(messages=False)
    assert "messages" not in window
    assert "nextCursor" not in window
    assert (window["count"], window["key"]) == (3, "p")
    page = api.read(f"/api/v1/stream/window/{window['leaseId']}/messages", maxMessages=2)
    assert data_of(page) == [1, 2]
    assert page["nextCursor"]
    stream.ack(window)
    assert stream.empty()


def test_without_messages_the_log_is_not_read(stream: StreamApi) -> None:
    """The key of these records is unknown, so reading them fails."""
    stream.define(partitioned=True)
    records = stream.push(1)
    stream.seal(stream.over(records))
    stream.run(
        "UPDATE queenspark.messages SET encrypted = true WHERE queue_id = %s AND id = %s",
        records[0].queue_id, records[0].position[1],
    )  # fmt: skip
    assert stream.try_poll().status_code >= 400
    window = stream.poll(messages=False)
    assert window["count"] == 1
    stream.ack(window)


def test_a_page_size_makes_no_sense_without_messages(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    error = refused(stream.try_poll(messages=False, maxMessages=5), 400)
    assert "maxMessages is 5 and messages is false" in error
    assert "messages" in refused(stream.try_poll(messages="no"), 400)
