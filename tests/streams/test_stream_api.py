"""The stream endpoints: rejections, waiting, leases, resources, name conflicts."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest

from queenspark.broker.streams import patience
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.streams.sealing import MINUTE, minute
from tests.streams.stream_api import StreamApi, short
from tests.wire.api import Api, Json, push_operation, refused, responded
from tests.wire.deadline import eventually


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": None}, "name: Expected str, got null"),
        ({"name": ""}, "name must not be empty"),
        ({"name": "a\nb"}, "name must not contain control characters"),
        ({"name": "x" * 250}, "name is"),
        ({"namespace": ""}, "namespace must not be empty"),
        ({"source_queue_names": []}, "source_queue_names is required"),
        ({"source_queue_names": "q"}, "source_queue_names must be an array"),
        ({"source_queue_names": [1]}, "source_queue_names must be an array"),
        ({"source_queue_names": ["windows:a/b"]}, "source_queue_names: windows:a/b is a window queue"),
        ({"partitioned": "yes"}, "partitioned"),
        ({"window_type": "hopping"}, "window_type must be tumbling, sliding, session, count or rows"),
        ({"window_duration_ms": 0}, "window_duration_ms is 0; it must be at least 1"),
        ({"window_retention_ms": 0}, "window_retention_ms must be from 1 to 2000000000000"),
        ({"window_duration_ms": -60000}, "window_duration_ms is -60000; it must be at least 1"),
        ({"window_duration_ms": 2**60}, "window_duration_ms"),
        ({"window_duration_ms": 1.5}, "window_duration_ms"),
        ({"window_slide_ms": 5}, "window_slide_ms does not apply to tumbling windows; remove it"),
        ({"window_type": "sliding"}, "window_slide_ms is required for sliding windows"),
        (
            {"window_type": "sliding", "window_slide_ms": 90_000},
            "window_slide_ms (90000) must not exceed window_duration_ms (60000)",
        ),
        ({"window_type": "session"}, "window_gap_ms is required for session windows"),
        ({"window_type": "session", "window_gap_ms": 0}, "window_gap_ms is 0"),
        ({"window_type": "count"}, "window_size_count is required for count windows"),
        (
            {"window_type": "count", "window_size_count": 2, "window_slide_count": 3},
            "window_slide_count (3) must not exceed window_size_count (2)",
        ),
        ({"window_grace_period_ms": -5}, "window_grace_period_ms is -5; it must not be negative"),
        ({"window_lease_timeout_ms": 0}, "window_lease_timeout_ms must be from 1"),
        ({"idle_timeout_ms": -1}, "idle_timeout_ms is -1"),
        ({"event_time": ""}, "event_time () must be a path"),
        ({"event_time": "a..b"}, "event_time (a..b) must be a path"),
        ({"event_time": "data."}, "event_time (data.) must be a path"),
        ({"late": "maybe"}, "late must be process, warn or drop"),
        (
            {"emit_empty": True, "window_type": "session", "window_gap_ms": 5},
            "emit_empty applies only to final tumbling and sliding windows",
        ),
        ({"start": "yesterday"}, "start (yesterday) must be an ISO 8601 time"),
        ({"start": ""}, "start (empty) must be earliest, latest or an ISO 8601 time"),
    ],
)
def test_a_wrong_field_is_named(stream: StreamApi, api: Api, fields: dict[str, Any], error: str) -> None:
    api.configure(stream.queue)
    assert refused(stream.try_define(**fields), 400).startswith(error)
    assert stream.try_poll().status_code == 404


@pytest.mark.parametrize("field", ["name", "namespace"])
def test_a_missing_field_is_named(stream: StreamApi, api: Api, field: str) -> None:
    body = stream.request()
    del body[field]
    assert refused(api.post("/api/v1/stream/define", body), 400) == f"{field} is required"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"window_type": "sliding", "window_slide_ms": 10_000},
        {"window_type": "session", "window_gap_ms": 5000},
        {"window_type": "count", "window_size_count": 10, "window_slide_count": 5},
        {"event_time": "data.order.lines.0.at", "late": "warn", "idle_timeout_ms": 0},
        {"start": "latest"},
        {"start": "2026-01-31T12:00:00+02:00"},
        {"unknown": "is ignored"},
    ],
)
def test_valid_definitions(stream: StreamApi, fields: dict[str, Any]) -> None:
    response = stream.define(**fields)
    assert response == {
        "success": True, "stream_id": str(stream.id), "name": stream.name, "namespace": "tests", "version": 1,
        "output": "windows",
    }  # fmt: skip
    shown = stream.resource()
    assert shown["windowType"] == fields.get("window_type", "tumbling")
    assert shown["eventTime"] == fields.get("event_time")


@pytest.mark.parametrize("missing", ["streamName", "consumerGroup"])
def test_a_poll_names_the_missing_field(stream: StreamApi, api: Api, missing: str) -> None:
    body = {"streamName": stream.name, "consumerGroup": "g"}
    del body[missing]
    assert refused(api.post("/api/v1/stream/poll", body), 400) == f"{missing} is required"


@pytest.mark.parametrize("field", [{"maxWindows": 0}, {"maxMessages": 0}, {"timeout": -1}])
def test_a_poll_refuses_impossible_numbers(stream: StreamApi, field: dict[str, Any]) -> None:
    stream.define()
    assert next(iter(field)) in refused(stream.try_poll(**field), 400)


def test_acks_and_renewals_without_a_lease(stream: StreamApi, api: Api) -> None:
    assert refused(api.post("/api/v1/stream/ack", {"windowId": "x"}), 400) == "Missing leaseId"
    assert refused(api.post("/api/v1/stream/ack", {"leaseId": ""}), 400) == "Missing leaseId"
    for lease in ("nonsense", "00000000-0000-0000-0000-000000000000"):
        body = {"windowId": "x", "leaseId": lease, "success": True}
        assert refused(api.post("/api/v1/stream/ack", body), 400) == "Invalid or expired lease"
        response = api.post("/api/v1/stream/renew-lease", {"leaseId": lease})
        assert refused(response, 404) == "Lease not found or expired"


def test_an_ack_of_another_window_is_refused(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1))
    window = stream.poll()
    assert "windowId" in refused(stream.try_ack({**window, "id": "other"}), 400)
    stream.ack(window)


def test_an_ordinary_lease_is_no_lease_of_a_window(stream: StreamApi, api: Api) -> None:
    api.push(stream.queue, 1)
    (message,) = api.take(stream.queue)
    body = {"leaseId": message["leaseId"], "success": True}
    assert refused(api.post("/api/v1/stream/ack", body), 400) == "Invalid or expired lease"
    api.complete([message])


@pytest.mark.parametrize("missing", ["streamName", "consumerGroup", "timestamp"])
def test_a_seek_without_required_fields(stream: StreamApi, api: Api, missing: str) -> None:
    body = {"streamName": stream.name, "consumerGroup": "g", "timestamp": "2026-01-31T12:00:00Z"}
    assert refused(api.post("/api/v1/stream/seek", body), 404) == "Stream not found"
    for wrong in ({**body, missing: ""}, {key: body[key] for key in body if key != missing}):
        assert refused(api.post("/api/v1/stream/seek", wrong), 400) == "Missing required parameters"


def test_a_poll_waits_for_a_window(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    with ThreadPoolExecutor(1) as pool:
        polled = pool.submit(stream.poll, timeout=20_000)
        stream.seal(minute("k", 1))
        began = time.monotonic()
        assert short(polled.result()) == "k1"
        assert time.monotonic() - began < 2


def test_a_poll_ends_before_the_client_times_out(stream: StreamApi) -> None:
    assert [patience(timeout, 60) for timeout in (0, 1000, 30_000, 120_000)] == [0, 0.9, 29, 60]
    stream.define()
    assert stream.try_poll(timeout=50).status_code == 204


def test_a_poll_gets_a_window_released_by_an_ack_at_another_broker(
    stream: StreamApi, shared_broker: Broker, broker: StartBroker
) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1), minute("k", 2))
    window = stream.poll()
    other = broker(database_url=shared_broker.database_url)
    with Api(other.url) as api, ThreadPoolExecutor(1) as pool:
        polled = pool.submit(stream.poll, timeout=20_000)
        assert api.post("/api/v1/stream/ack", {"leaseId": window["leaseId"], "success": True}).json() == {
            "success": True,
            "acked": True,
            "dlq": False,
        }
        assert short(polled.result()) == "k2"
        # Streams redefined or deleted here are known there.
        responded(api.post("/api/v1/stream/define", stream.request(partitioned=True, namespace="b")), 201)
        deadline = time.monotonic() + 5
        while stream.try_poll().status_code != 400 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "namespace is required" in refused(stream.try_poll(), 400)


def test_pop_maintenance_stops_polls(stream: StreamApi, broker: StartBroker) -> None:
    own = broker()
    with Api(own.url) as api:
        mine = StreamApi(api, own.database_url)
        mine.define(partitioned=True)
        mine.seal(minute("k", 1))
        api.post("/api/v1/system/maintenance/pop", {"enabled": True})
        assert mine.empty()
        api.post("/api/v1/system/maintenance/pop", {"enabled": False})
        assert mine.drain() == ["k1"]
        mine.close()


def test_names_of_window_queues_are_taken(api: Api) -> None:
    name = "windows:tests/x"
    assert "windows:" in refused(api.push_items([{"queue": name, "payload": 1}]), 400)
    assert "windows:" in refused(api.post("/api/v1/configure", {"queue": name}), 400)
    body = {"operations": [push_operation(name, 1)]}
    assert "windows:" in refused(api.post("/api/v1/transaction", body), 400)
    assert "windows:" in refused(api.delete("/api/v1/resources/queues/windows%3Atests%2Fx"), 400)
    options = {"queue": "q", "options": {"deadLetterQueue": name}}
    assert "windows:" in refused(api.post("/api/v1/configure", options), 400)
    assert api.pop(name, subscriptionMode="new").status_code == 204
    assert api.get("/api/v1/resources/queues/windows%3Atests%2Fx").status_code == 404


def test_window_queues_are_listed_only_when_asked_for(stream: StreamApi, api: Api) -> None:
    api.configure(stream.queue)
    before = api.read("/api/v1/resources/overview"), api.read("/api/v1/status")
    stream.define(partitioned=True)
    stream.seal(minute("k", 1))
    after = api.read("/api/v1/resources/overview"), api.read("/api/v1/status")
    for name in ("queues", "partitions"):
        assert [each[name] for each in after] == [each[name] for each in before]
    window_queue = f"windows:tests/{stream.name}"
    for path in ("/api/v1/resources/queues", "/api/v1/status/queues"):
        listed = {queue["name"] for queue in api.read(path)["queues"]}
        assert stream.queue in listed
        assert window_queue not in listed
        assert window_queue in {queue["name"] for queue in api.read(path, windows="true")["queues"]}
    assert api.read(f"/api/v1/resources/queues/{quote(window_queue, safe='')}")["name"] == window_queue


def test_streams_are_listed_with_their_definitions(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True, window_grace_period_ms=5000)
    stream.seal(minute("k", 1))
    stream.poll("readers")

    def shown() -> Json:
        streams = api.read("/api/v1/resources/streams")["streams"]
        found: Json = next(each for each in streams if each["name"] == stream.name)
        return found

    expected = {
        "id": str(stream.id), "namespace": "tests", "partitioned": True, "windowType": "tumbling",
        "windowDurationMs": 60_000, "windowGracePeriodMs": 5000, "windowLeaseTimeoutMs": 60_000,
        "sourceQueues": [stream.queue], "activeLeases": 1, "consumerGroups": ["readers"], "version": 1,
    }  # fmt: skip
    eventually(lambda: shown()["activeLeases"])  # leases are counted once a second
    assert {name: shown()[name] for name in expected} == expected
    assert shown()["createdAt"] <= shown()["updatedAt"]
    elsewhere = api.read("/api/v1/resources/streams", namespace="elsewhere")["streams"]
    assert all(each["namespace"] == "elsewhere" for each in elsewhere)


def test_a_stream_shows_the_lag_of_its_groups(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("a", 2), minute("b", 1))
    stream.ack(stream.poll("readers"))
    (group,) = stream.resource()["groups"]
    assert (group["name"], group["lag"]) == ("readers", 2)
    assert group["lastAckedAt"] is not None


def test_a_stream_shows_the_report_of_the_pipeline(stream: StreamApi, api: Api) -> None:
    stream.define()
    (record,) = stream.push(1)
    stats = {
        "stream": stream.id, "version": 1, "watermark_us": 60_000_000, "open_windows": 2, "records": 9,
        "windows": 4, "late": 3, "dropped": 2, "dead": 1,
    }  # fmt: skip
    stream.seal(stats=[stats])
    progress = stream.resource()["progress"]
    expected = {
        "watermark": "1970-01-01T00:01:00.000Z", "openWindows": 2, "records": 9, "sealedWindows": 4,
        "late": 3, "dropped": 2, "dead": 1,
    }  # fmt: skip
    assert {name: progress[name] for name in expected} == expected
    assert progress["lagSeconds"] > 0
    totals = api.read("/api/v1/resources/streams/stats")
    assert totals["streams"] >= 1
    assert totals["records"] >= 9
    assert stream.id in [int(each["id"]) for each in totals["byStream"]]
    assert set(totals["pipeline"]) >= {"active", "holder", "epoch"}
    assert record.data == 1


def test_consumers_show_how_far_each_key_is(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("a", 2), minute("b", 1))
    for _ in range(2):
        stream.ack(stream.poll("readers"))
    stream.poll("readers")
    rows = stream.resource("consumers")["consumers"]
    assert [(row["consumerGroup"], row["streamKey"], row["totalWindowsConsumed"]) for row in rows] == [
        ("readers", "a", 1), ("readers", "b", 1),
    ]  # fmt: skip
    assert rows[0]["lastAckedWindowEnd"] == "1970-01-01T00:02:00.000Z"
    assert rows[0]["lastConsumedAt"] is not None


def fill(stream: StreamApi) -> dict[str, Any]:
    """Windows in every state for the group `g`; return the one that is leased."""
    stream.define(partitioned=True)
    stream.run("UPDATE queenspark.queues SET retry_limit = 0 WHERE id = %s", stream.queue_id)
    stream.seal(minute("dead", 1, count=7))
    stream.ack(stream.poll(), success=False, error="never")
    stream.run("UPDATE queenspark.queues SET retry_limit = 3 WHERE id = %s", stream.queue_id)
    stream.seal(minute("done", 1))
    stream.ack(stream.poll())
    stream.seal(minute("failed", 1))
    stream.ack(stream.poll(), success=False, error="not today")
    stream.seal(minute("leased", 1), minute("leased", 2))
    window = stream.poll(consumerId="worker-7")
    stream.seal(minute("new", 1))
    return window


def states(stream: StreamApi, **query: Any) -> list[tuple[str, int, str]]:
    shown = stream.resource("windows", **query)["windows"]
    return [(each["key"], round(_minutes(each["start"])), each["state"]) for each in shown]


def _minutes(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() / 60


def test_active_windows_are_listed_with_their_state(stream: StreamApi) -> None:
    lease = fill(stream)
    shown = {(each["key"], each["start"]): each for each in stream.resource("windows")["windows"]}
    assert sorted(states(stream, consumerGroup="g")) == sorted(states(stream)) == [
        ("dead", 1, "dead"), ("failed", 1, "retrying"), ("leased", 1, "leased"), ("leased", 2, "waiting"),
        ("new", 1, "waiting"),
    ]  # fmt: skip
    by_key = {key: each for (key, _), each in sorted(shown.items(), reverse=True)}
    leased, failed, dead = by_key["leased"], by_key["failed"], by_key["dead"]
    assert (leased["id"], leased["leaseExpiresAt"] > leased["sealedAt"]) == (lease["id"], True)
    assert leased["leaseHolder"] == "worker-7"
    assert leased["leasedAt"] < leased["leaseExpiresAt"]
    assert (failed["attempts"], failed["error"], failed["consumerGroup"]) == (1, "not today", "g")
    assert (failed["leaseHolder"], failed["leasedAt"]) == (None, None)
    assert failed["availableAt"] is not None
    assert (dead["attempts"], dead["error"], dead["count"]) == (1, "never", 7)
    assert dead["failedAt"] is not None
    assert by_key["new"]["attempts"] == 0


def test_active_windows_are_chosen_by_state_and_paged(stream: StreamApi, api: Api) -> None:
    fill(stream)
    assert states(stream, state="leased") == [("leased", 1, "leased")]
    assert states(stream, state="retrying") == [("failed", 1, "retrying")]
    assert states(stream, state="dead") == [("dead", 1, "dead")]
    assert sorted(states(stream, state="waiting")) == [("leased", 2, "waiting"), ("new", 1, "waiting")]
    pages = [states(stream, limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert sorted(window for page in pages for window in page) == sorted(states(stream))
    assert states(stream, consumerGroup="nobody") == []
    path = f"/api/v1/resources/streams/{stream.name}/windows"
    assert "state" in refused(api.get(path, state="open"), 400)


def test_a_window_whose_lease_is_over_waits_again(stream: StreamApi) -> None:
    fill(stream)
    stream.expire_leases()
    stream.end_waits()
    assert ("leased", 1, "waiting") in states(stream, state="waiting")
    assert ("failed", 1, "waiting") in states(stream, state="waiting")
    assert states(stream, state="leased") == []


def test_a_window_that_was_put_back_waits_again(stream: StreamApi, api: Api) -> None:
    fill(stream)
    (dead,) = stream.resource("windows", state="dead")["windows"]
    queue = quote(f"windows:tests/{stream.name}", safe="")
    responded(api.post(f"/api/v1/dlq/retry?queue={queue}&consumerGroup=g"), 200)
    waiting = stream.resource("windows", state="waiting")["windows"]
    assert dead["id"] in {each["id"] for each in waiting}
    assert states(stream, state="dead") == []


def test_windows_that_no_group_reads_wait(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("b", 1))
    assert states(stream) == [("a", 1, "waiting"), ("b", 1, "waiting")]
    assert {each["consumerGroup"] for each in stream.resource("windows")["windows"]} == {None}


def test_late_and_dead_records_are_shown_with_their_message(stream: StreamApi) -> None:
    stream.define(partitioned=True, event_time="at")
    first, second = stream.push(1, 2)
    common = {"stream": stream.id, "version": 1, "key": "p"}
    late = [
        {**common, "txid": record.position[0], "id": record.position[1], "time_us": 0, "closed_us": 1_000_000,
         "dropped": record is second}
        for record in (first, second)
    ]  # fmt: skip
    dead = [{**common, "txid": first.position[0], "id": first.position[1]}, {**common, "txid": 1, "id": 1}]
    stream.seal(late=late, dead=dead)
    shown = stream.resource("late")["late"]
    assert sorted(each["dropped"] for each in shown) == [False, True]
    assert {each["queue"] for each in shown} == {stream.queue}
    assert {each["closedUpTo"] for each in shown} == {"1970-01-01T00:00:01.000Z"}
    pages = [stream.resource("late", limit=1, offset=offset)["late"] for offset in range(3)]
    assert pages == [[shown[0]], [shown[1]], []]
    gone, known = sorted(stream.resource("dead")["dead"], key=lambda each: each["queue"] or "")
    assert (known["queue"], known["partition"], known["key"]) == (stream.queue, "p", "p")
    assert gone["queue"] is None


def test_a_deleted_stream_is_gone(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1))
    window = stream.poll()
    assert responded(api.delete(f"/api/v1/resources/streams/{stream.name}"), 200)["deleted"]
    assert refused(stream.try_poll(), 404) == "Stream not found"
    assert refused(stream.try_ack(window), 400) == "Invalid or expired lease"
    assert api.delete(f"/api/v1/resources/streams/{stream.name}").status_code == 404
    assert api.get(f"/api/v1/resources/queues/{stream.queue}").status_code == 200
    # Defined again, it is another stream.
    before = stream.id
    stream.define(partitioned=True)
    assert stream.id != before
    assert stream.empty()


def test_unknown_streams_are_not_found(api: Api) -> None:
    for path in ("", "/consumers", "/late", "/dead"):
        assert refused(api.get(f"/api/v1/resources/streams/no-such{path}"), 404) == "Stream not found"


def test_a_lease_of_more_than_a_day_is_refused(stream: StreamApi) -> None:
    error = refused(stream.try_define(window_lease_timeout_ms=86_400_001), 400)
    assert error.startswith("window_lease_timeout_ms (86400001) must not exceed 86400000, a day")


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_seek_ahead_of_the_newest_window_is_kept(stream: StreamApi, partitioned: bool) -> None:
    """Windows that end before it are skipped when they come, of keys that are new then, too."""
    stream.define(partitioned=partitioned)
    keys = ["a", "b"] if partitioned else ["__GLOBAL__"]
    stream.seal(*(minute(key, 1) for key in keys[:1]))
    stream.seek(5 * 60)
    for number in range(2, 7):
        stream.seal(*(minute(key, number) for key in keys))
    assert stream.resource("windows", consumerGroup="g")["windows"][0]["start"] == "1970-01-01T00:05:00.000Z"
    assert sorted(stream.drain()) == sorted(f"{key}{number}" for key in keys for number in (5, 6))
    stream.seal(*(minute(key, 3, revision=2) for key in keys))
    stream.seal(*(minute(key, 7) for key in keys))
    assert sorted(stream.drain()) == [f"{key}7" for key in keys]
    (group,) = stream.resource()["groups"]
    assert group["lag"] == 0
    stream.seek(0)
    assert len(stream.drain()) == 8 * len(keys) - (len(keys) - 1)


def test_a_seek_of_the_queue_forgets_the_time_of_an_earlier_one(stream: StreamApi, api: Api) -> None:
    stream.define()
    stream.seal(minute("__GLOBAL__", 1))
    stream.seek(5 * 60)
    assert stream.empty()
    queue = quote(stream.resource()["windowQueue"], safe="")
    api.post(f"/api/v1/consumer-groups/g/queues/{queue}/seek", {"toBeginning": True})
    assert stream.drain() == ["__GLOBAL__1"]


def test_streams_are_sorted_by_the_watermark_that_they_show(stream: StreamApi, api: Api) -> None:
    """That of the current version: an ended one stops at its last window."""
    other = StreamApi(api, stream.database_url)
    other.name, other.queue = f"{stream.name}-other", stream.queue
    try:
        stream.define(window_duration_ms=60_000)
        stream.define(window_duration_ms=30_000)
        other.define()
        marks = [(stream, 1, 1 * MINUTE), (stream, 2, 3 * MINUTE), (other, 1, 2 * MINUTE)]
        for each, version, mark in marks:
            each.seal(stats=[{"stream": each.id, "version": version, "watermark_us": mark}])
        found = api.read("/api/v1/resources/streams", search=stream.name, sort="watermark")["streams"]
        shown = [each["progress"]["watermark"] for each in found]
        assert shown == ["1970-01-01T00:02:00.000Z", "1970-01-01T00:03:00.000Z"]
        assert [each["name"] for each in found] == [other.name, stream.name]
    finally:
        other.close()


def test_streams_are_sorted_by_lag(stream: StreamApi, api: Api) -> None:
    stream.define()
    newer = StreamApi(api, stream.database_url)
    newer.name = f"{stream.name}-newer"
    idle = StreamApi(api, stream.database_url)
    idle.name = f"{stream.name}-idle"
    try:
        newer.define()
        idle.define()
        stream.push(1)  # nothing reads either stream: the older message is the longer lag
        newer.push(1)

        def sorted_by(sort: str) -> list[str]:
            found = api.read("/api/v1/resources/streams", search=stream.name, sort=sort)["streams"]
            return [each["name"] for each in found]

        assert sorted_by("-lagSeconds") == [stream.name, newer.name, idle.name]
        assert sorted_by("lagSeconds") == [idle.name, newer.name, stream.name]
    finally:
        newer.close()
        idle.close()
