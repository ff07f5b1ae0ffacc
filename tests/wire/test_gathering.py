"""Concurrent requests go to the database together, and get separate responses."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg

from queenspark.broker.broker import _LANES as LANES
from tests.conftest import StartBroker
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api
from tests.wire.deadline import eventually
from tests.wire.locks import waiting_for_a_lock


def test_acks_that_wait_together_are_judged_one_by_one(
    broker: StartBroker, database: str, queue: str
) -> None:
    """All acks wait behind a lock, so they are gathered; a stale one among them harms no other."""
    with Api(broker().url) as api, ThreadPoolExecutor(20) as threads:
        for number in range(20):
            api.push(queue, number, partition=f"p{number}")
        taken = [api.take(queue, consumerGroup="g")[0] for _ in range(20)]
        taken[7]["leaseId"] = "00000000-0000-0000-0000-000000000000"
        with (
            psycopg.connect(database) as blocker,
            psycopg.connect(database, autocommit=True) as observer,
        ):
            blocker.execute("LOCK TABLE queenspark.places IN ACCESS EXCLUSIVE MODE")
            responses = [threads.submit(api.ack, message, consumerGroup="g") for message in taken]
            eventually(lambda: waiting_for_a_lock(observer))
            time.sleep(0.5)  # all of them have arrived
            waiting = observer.execute("SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            assert sum("ack(" in query for (query,) in waiting) <= LANES
        assert [response.result()["success"] for response in responses] == [n != 7 for n in range(20)]


def test_polls_that_wait_together_get_windows_of_different_keys(broker: StartBroker, database: str) -> None:
    with Api(broker().url) as api, ThreadPoolExecutor(20) as threads:
        stream = StreamApi(api, database)
        stream.define(partitioned=True, window_duration_ms=60_000)
        records = {f"k{number}": stream.push(number, partition=f"k{number}")[0] for number in range(12)}
        for key, record in records.items():
            start = record.created_us // 60_000_000
            stream.seal(minute(key, start, sources=[(record.queue_id, record.position, record.position)]))
        # Not 0: while one poll discovers windows, another one that cannot wait is told that there are none.
        body = {"streamName": stream.name, "consumerGroup": "g", "timeout": 3000}
        with (
            psycopg.connect(database) as blocker,
            psycopg.connect(database, autocommit=True) as observer,
        ):
            blocker.execute("LOCK TABLE queenspark.places IN ACCESS EXCLUSIVE MODE")
            polls = [threads.submit(api.post, "/api/v1/stream/poll", body) for _ in range(20)]
            eventually(lambda: waiting_for_a_lock(observer))
            time.sleep(0.5)  # all of them have arrived
        responses = [poll.result() for poll in polls]
        windows = [response.json()["window"] for response in responses if response.status_code == 200]
        assert len(responses) - len(windows) == 8
        assert sorted(window["key"] for window in windows) == sorted(records)
        assert len({window["leaseId"] for window in windows}) == 12
        for window in windows:
            assert [message["data"] for message in window["messages"]] == [records[window["key"]].data]
            assert stream.ack(window)["acked"]
        stream.close()
