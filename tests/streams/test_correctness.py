"""The known holes of windows and leases, by number; those that the pipeline must close are tested with it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.broker_process import Broker
from tests.database import connect
from tests.streams.sealing import MINUTE, Sealed, minute
from tests.streams.stream_api import StreamApi, data_of, short
from tests.wire.api import Api, ack_operation, payloads_of, push_operation, refused, responded

GLOBAL = "__GLOBAL__"


def test_04_a_global_stream_starts_for_a_new_group(stream: StreamApi) -> None:
    stream.define()
    records = [*stream.push(1, partition="a"), *stream.push(2, partition="b")]
    stream.seal(stream.over(records, GLOBAL))
    for group in ("first", "second"):
        window = stream.poll(group)
        assert window["key"] == GLOBAL
        assert data_of(window) == [1, 2]


def test_05_an_expired_lease_is_taken_over_with_a_new_token(stream: StreamApi) -> None:
    stream.define(partitioned=True, window_lease_timeout_ms=150)
    stream.seal(minute("k", 1), minute("k", 2))
    first = stream.poll()
    second = stream.poll()
    assert second["id"] == first["id"]
    assert second["leaseId"] != first["leaseId"]
    assert refused(stream.try_ack(first), 400) == "Invalid or expired lease"
    stream.expire_leases()
    third = stream.poll()
    stream.run("UPDATE queenspark.places SET lease_expires_at = lease_expires_at + interval '1 hour'")
    stream.ack(third)
    assert stream.drain() == ["k2"]


def test_06_pollers_at_one_moment_get_different_windows(stream: StreamApi, shared_broker: Broker) -> None:
    keys = [f"k{n}" for n in range(12)]
    stream.define(partitioned=True)
    stream.seal(*(minute(key, 1) for key in keys))
    start = threading.Barrier(len(keys))

    def take(_: int) -> str:
        with Api(shared_broker.url) as api:
            start.wait()
            body = {"streamName": stream.name, "consumerGroup": "g", "timeout": 10_000}
            return str(responded(api.post("/api/v1/stream/poll", body), 200)["window"]["key"])

    with ThreadPoolExecutor(len(keys)) as pool:
        assert sorted(pool.map(take, range(len(keys)))) == sorted(keys)
    assert stream.empty()


def test_07_a_redefinition_makes_no_second_lease_on_a_key(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 10))
    held = stream.poll()
    assert stream.define(partitioned=True, window_duration_ms=120_000)["version"] == 2
    stream.seal(Sealed("k", 10 * MINUTE, 12 * MINUTE, version=2))
    assert stream.empty()
    stream.ack(held)
    after = stream.poll()
    assert (held["version"], after["version"]) == (1, 2)
    assert after["id"] == f"{stream.id}:k:600000:720000:v2"


def test_08_acks_only_move_forward_and_may_be_repeated(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1), minute("k", 2), minute("k", 3))
    first = stream.poll()
    assert stream.ack(first) == {"success": True, "acked": True, "dlq": False}
    assert stream.ack(first)["success"]
    second = stream.poll()
    assert refused(stream.try_ack(first), 400) == "Invalid or expired lease"
    stream.ack(second)
    assert stream.drain() == ["k3"]


def test_09_an_ack_from_before_a_seek_is_refused(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1), minute("k", 2))
    held = stream.poll()
    stream.seek(0)
    assert refused(stream.try_ack(held), 400) == "Invalid or expired lease"
    assert stream.renew(held, 1000).status_code == 404
    assert stream.drain() == ["k1", "k2"]


def test_10_a_seek_is_aligned_and_touches_one_stream_only(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True)
    other = StreamApi(api, stream.database_url)
    other.define(partitioned=True)
    for each in (stream, other):
        each.seal(minute("a", 1), minute("a", 2), minute("a", 3), minute("b", 1))
        assert sorted(each.drain()) == ["a1", "a2", "a3", "b1"]
    stream.seek("1970-01-01T00:02:17.123Z")
    assert stream.drain() == ["a2", "a3"]
    assert other.empty()
    # Keys that appear later, and later windows of the others, come as they would have.
    stream.seal(minute("new", 2), minute("b", 4))
    assert sorted(stream.drain()) == ["b4", "new2"]
    other.close()


def test_10_sliding_windows_are_sought_by_their_slide(stream: StreamApi) -> None:
    stream.define(partitioned=True, window_type="sliding", window_duration_ms=120_000, window_slide_ms=60_000)
    stream.seal(*(Sealed("k", n * MINUTE, (n + 2) * MINUTE) for n in range(5)))
    stream.seek(3.5 * 60)
    assert stream.drain() == ["k2", "k3", "k4"]


def test_10_sessions_and_counts_are_sought_by_their_end(stream: StreamApi) -> None:
    stream.define(partitioned=True, window_type="session", window_gap_ms=1000)
    stream.seal(Sealed("k", MINUTE, MINUTE + 30_000_000), Sealed("k", 2 * MINUTE, 2 * MINUTE + 1))
    stream.seek(60 + 29)
    assert stream.drain() == ["k1", "k2"]
    stream.seek(60 + 30)
    assert stream.drain() == ["k2"]


@pytest.mark.parametrize(("partitioned", "key"), [(True, "k"), (False, GLOBAL)])
def test_11_seek_works_on_both_kinds(stream: StreamApi, partitioned: bool, key: str) -> None:
    stream.define(partitioned=partitioned)
    stream.seal(minute(key, 1), minute(key, 2))
    assert len(stream.drain()) == 2
    stream.seek(120)
    assert stream.drain() == [f"{key}2"]
    # A group that does not exist yet is made, and begins there.
    stream.seek(120, "new")
    assert stream.drain("new") == [f"{key}2"]


def test_12_a_key_is_a_partition_name_over_all_sources(stream: StreamApi, api: Api) -> None:
    other = f"{stream.queue}-other"
    api.configure(other)
    stream.define(partitioned=True, source_queue_names=[stream.queue, other])
    records = [
        *stream.push(1, partition="k"), *stream.push(2, partition="k", queue=other),
        *stream.push(3, partition="k"),
    ]  # fmt: skip
    stream.push("another key", partition="x")
    stream.seal(stream.over(records))
    window = stream.poll()
    assert data_of(window) == [1, 2, 3]
    assert [message["queue"] for message in window["messages"]] == [stream.queue, other, stream.queue]
    assert window["id"].startswith(f"{stream.id}:k:")


def test_13_empty_windows_are_skipped(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1), minute("k", 100_000))
    assert stream.drain() == ["k1", "k100000"]


def test_14_the_oldest_window_comes_first(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("z", 1), minute("a", 2))
    stream.seal(minute("m", 3), minute("b", 4), minute("a", 5))
    assert stream.drain() == ["z1", "a2", "m3", "b4", "a5"]


def test_14_a_poll_costs_the_same_with_many_keys(stream: StreamApi, api: Api) -> None:
    costs = []
    for keys in (100, 20_000):
        each = StreamApi(api, stream.database_url)
        each.define(partitioned=True)
        each.seal(*(minute(f"k{n}", 1) for n in range(keys)))
        window = each.poll()
        with connect(each.database_url, autocommit=False) as connection:
            ((group,),) = connection.execute(
                "SELECT id FROM queenspark.groups WHERE queue_id = %s", (each.queue_id,)
            ).fetchall()
            ((plan,),) = connection.execute(
                "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
                " SELECT * FROM pop(%s, 1, 1, ARRAY[gen_random_uuid()], false)", (group,),
            ).fetchall()  # fmt: skip
        costs.append(plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"])
        assert window["key"] == "k0"
        each.close()
    few, many = costs
    assert many <= 2 * few + 20


def test_15_one_window_of_a_key_is_in_flight_and_keys_scale_out(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("a", 2), minute("b", 1), minute("c", 1))
    windows = responded(stream.try_poll(maxWindows=9), 200)["windows"]
    assert sorted(map(short, windows)) == ["a1", "b1", "c1"]
    assert len({window["leaseId"] for window in windows}) == 3
    assert stream.empty()
    assert not stream.empty("another group")
    for window in windows:
        stream.ack(window)
    assert stream.drain() == ["a2"]


def test_15_windows_polled_together_are_acked_together(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("b", 1), minute("c", 1), minute("a", 2))
    windows = responded(stream.try_poll(maxWindows=3), 200)["windows"]
    acks = [
        {name: window[name] for name in ("leaseId", "partitionId", "transactionId")} for window in windows
    ]
    acks[2] |= {"status": "failed"}
    body = {"consumerGroup": "g", "acknowledgments": acks}
    assert [each["success"] for each in api.post("/api/v1/ack/batch", body).json()] == [True] * 3
    found = stream.drain()
    stream.end_waits()
    assert sorted(found + stream.drain()) == sorted(["a2", short(windows[2])])


def test_16_a_failed_window_is_tried_again_later_and_then_a_dead_letter(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1), minute("k", 2))
    delays = []
    for attempt in range(4):
        window = stream.poll()
        assert (short(window), window["retryCount"]) == ("k1", attempt)
        response = stream.ack(window, success=False, error="no network")
        assert response == {"success": True, "acked": False, "dlq": attempt == 3}
        if attempt == 2:
            assert stream.empty(), "the last wait is the longest"
        if attempt < 3:
            delays += stream.end_waits()
    assert [round(delay) for delay in delays] == [1, 2, 4]
    assert stream.drain() == ["k2"]
    queue = stream.resource()["windowQueue"]
    (dead,) = api.dead_letters(queue)
    assert (dead["errorMessage"], dead["data"]["id"]) == ("no network", window["id"])
    # It can be retried, and is a window again.
    path = f"/api/v1/messages/{dead['partitionId']}/{dead['transactionId']}/retry"
    assert api.post(path).status_code == 200
    assert stream.drain() == ["k1"]
    assert api.dead_letters(queue) == []


def test_17_renewing_never_shortens_a_lease(stream: StreamApi) -> None:
    stream.define(partitioned=True, window_lease_timeout_ms=60_000)
    stream.seal(minute("k", 1))
    window = stream.poll()
    for extend_ms, expected in ((1000, 60), (30_000, 60), (90_000, 90)):
        response = responded(stream.renew(window, extend_ms), 200)
        left = datetime.fromisoformat(response["lease_expires_at"]) - datetime.now(UTC)
        assert expected - 20 < left.total_seconds() <= expected + 1


def test_20_each_parked_poll_gets_a_window_or_keeps_waiting(stream: StreamApi, shared_broker: Broker) -> None:
    stream.define(partitioned=True)

    def take(_: int) -> Any:
        with Api(shared_broker.url) as api:
            body = {"streamName": stream.name, "consumerGroup": "g", "timeout": 20_000}
            return responded(api.post("/api/v1/stream/poll", body), 200)["window"]["key"]

    with ThreadPoolExecutor(3) as pool:
        taken = [pool.submit(take, n) for n in range(3)]
        for key in ("a", "b", "c"):
            stream.seal(minute(key, 1))
        assert sorted(each.result() for each in taken) == ["a", "b", "c"]


def test_22_unknown_sources_are_refused(stream: StreamApi, api: Api) -> None:
    api.configure(stream.queue)
    error = refused(stream.try_define(source_queue_names=["no-1", stream.queue, "no-2"]), 400)
    assert "source_queue_names: no-1, no-2 do not exist" in error
    assert refused(stream.try_poll(), 404) == "Stream not found"


def test_22_sources_are_replaced(stream: StreamApi, api: Api) -> None:
    other = f"{stream.queue}-other"
    api.configure(other)
    stream.define()
    stream.define(source_queue_names=[other])
    assert stream.resource()["sourceQueues"] == [other]


def test_22_a_second_namespace_has_a_stream_of_its_own(stream: StreamApi) -> None:
    first = stream.define()
    second = stream.define(namespace="elsewhere")
    assert first["stream_id"] != second["stream_id"]
    for response in (stream.try_poll(), stream.api.get(f"/api/v1/resources/streams/{stream.name}")):
        assert "elsewhere, tests" in refused(response, 400)
    assert stream.try_poll(namespace="elsewhere").status_code == 204
    assert stream.try_poll(namespace="nowhere").status_code == 404


def test_22_a_duration_of_zero_is_refused(stream: StreamApi, api: Api) -> None:
    api.configure(stream.queue)
    error = refused(stream.try_define(window_duration_ms=0), 400)
    assert error == "window_duration_ms is 0; it must be at least 1"


def test_23_a_large_window_comes_in_pages_with_full_messages(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True)
    records = stream.push(*range(7))
    stream.seal(stream.over(records))
    window = stream.poll(maxMessages=3)
    messages, cursor = window["messages"], window["nextCursor"]
    pages = 1
    while cursor is not None:
        page = api.read(f"/api/v1/stream/window/{window['leaseId']}/messages", cursor=cursor, maxMessages=3)
        messages, cursor = messages + page["messages"], page["nextCursor"]
        pages += 1
    assert pages == 3
    assert [message["data"] for message in messages] == list(range(7))
    for message in messages:
        assert set(message) == {
            "id", "data", "payload", "created_at", "createdAt", "queue", "partition", "transactionId",
            "producerSub",
        }  # fmt: skip
        assert message["payload"] == message["data"]
    stream.ack(window)
    gone = api.get(f"/api/v1/stream/window/{window['leaseId']}/messages")
    assert refused(gone, 404) == "Lease not found or expired"


def test_23_a_window_is_whole_unless_pages_were_asked_for(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(stream.over(stream.push(*range(5))))
    window = stream.poll()
    assert data_of(window) == [0, 1, 2, 3, 4]
    assert "nextCursor" not in window


def test_24_retention_waits_and_says_so(stream: StreamApi, api: Api) -> None:
    api.configure(stream.queue, retentionSeconds=1)
    stream.push(1)
    stream.try_define()
    stream.run(
        "UPDATE queenspark.messages SET created_at = created_at - interval '60 seconds'"
        " WHERE queue_id = (SELECT id FROM queenspark.queues WHERE name = %s)",
        stream.queue,
    )
    retention = stream.resource()["progress"]["retention"]
    assert 55 < retention["heldSeconds"] < 180
    assert retention["heldSince"] > retention["needsSince"]


def test_25_times_are_utc_and_ids_are_milliseconds(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 29_000_000))
    window = stream.poll()
    assert window["start"] == "2025-02-19T21:20:00.000Z"
    assert window["end"] == "2025-02-19T21:21:00.000Z"
    assert window["id"] == f"{stream.id}:k:1740000000000:1740000060000"


@pytest.mark.parametrize("partitioned", [True, False])
def test_25_a_partition_may_be_called_like_the_global_key(stream: StreamApi, partitioned: bool) -> None:
    stream.define(partitioned=partitioned)
    own = stream.push(1, partition=GLOBAL)
    others = stream.push(2, partition="x")
    own += stream.push(3, partition=GLOBAL)
    stream.seal(stream.over([*own, *others], GLOBAL))
    assert data_of(stream.poll()) == ([1, 3] if partitioned else [1, 2, 3])


def test_26_ack_and_push_in_one_transaction_happen_once(stream: StreamApi, api: Api) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("k", 1))
    results = f"{stream.queue}-results"
    window = stream.poll()
    operations = [
        push_operation(results, window["id"]), ack_operation(window, consumerGroup=window["consumerGroup"]),
    ]  # fmt: skip
    assert api.transaction(operations, [window["leaseId"]])["success"]
    # A retry under an expired lease changes nothing.
    again = api.transaction(operations, [window["leaseId"]])
    assert not again["success"]
    assert payloads_of(api.drain(results, 1)) == [window["id"]]
    assert api.empty(results)
    assert stream.drain() == []
