"""ttl and retention: which messages are removed, when, and which never are.

Messages are made old by changing their time of creation in the database.
"""

import time
from collections.abc import Iterator
from datetime import datetime

import psycopg
import pytest

from tests.conftest import StartBroker
from tests.wire.api import Api, payloads_of
from tests.wire.deadline import eventually
from tests.wire.locks import waiting_for_a_lock


@pytest.fixture(scope="module")
def own(module_broker: StartBroker) -> Iterator[Api]:
    """The API of a broker whose retention runs all the time, for all tests here."""
    with Api(module_broker(retention_interval_seconds=0.1).url) as api:
        yield api


@pytest.fixture
def connection(module_database: str) -> Iterator[psycopg.Connection]:
    """A connection to the database, whose log is empty."""
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute("DELETE FROM queenspark.messages")
        yield connection


def age(connection: psycopg.Connection, seconds: int) -> None:
    """Make every message that much older."""
    connection.execute(
        "UPDATE queenspark.messages SET created_at = created_at - make_interval(secs => %s)", (seconds,)
    )


def count(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM queenspark.messages").fetchone()
    assert row is not None
    return int(row[0])


def test_a_message_older_than_the_ttl_is_not_delivered(
    own: Api, queue: str, connection: psycopg.Connection
) -> None:
    own.configure(queue, ttl=3600)
    own.push(queue, "too old")
    age(connection, 3700)
    own.push(queue, "young")
    assert payloads_of(own.drain(queue, 1)) == ["young"]
    assert own.empty(queue)


def test_nothing_unread_vanishes_when_no_ttl_was_sent(
    own: Api, queue: str, connection: psycopg.Connection
) -> None:
    assert own.configure(queue)["options"]["ttl"] == 3600
    own.push(queue, "old but wanted")
    age(connection, 1_000_000)
    assert payloads_of(own.take(queue)) == ["old but wanted"]


def test_a_message_that_waited_too_long_is_a_dead_letter(
    own: Api, queue: str, connection: psycopg.Connection
) -> None:
    own.configure(queue, maxWaitTimeSeconds=3600)
    own.push(queue, "waited too long")
    age(connection, 3700)
    own.push(queue, "young")
    assert payloads_of(own.drain(queue, 1)) == ["young"]
    assert payloads_of(own.dead_letters(queue)) == ["waited too long"]


def test_retention_deletes_older_messages(own: Api, queue: str, connection: psycopg.Connection) -> None:
    own.configure(queue, retentionEnabled=True, retentionSeconds=3600)
    own.push(queue, "too old")
    age(connection, 3700)
    own.push(queue, "young")
    eventually(lambda: count(connection) == 1)
    assert payloads_of(own.drain(queue, 1)) == ["young"]
    assert own.empty(queue)


def test_retention_that_is_not_enabled_deletes_nothing(
    own: Api, queue: str, connection: psycopg.Connection
) -> None:
    own.configure(f"{queue}-swept", retentionEnabled=True, retentionSeconds=3600)
    own.configure(queue, retentionEnabled=False, retentionSeconds=3600)
    own.push(f"{queue}-swept", 1)
    own.push(queue, 1)
    age(connection, 3700)
    eventually(lambda: count(connection) == 1)
    assert payloads_of(own.take(queue)) == [1]


def test_completed_messages_are_deleted_after_their_own_time(
    own: Api, queue: str, connection: psycopg.Connection
) -> None:
    own.configure(queue, retentionEnabled=True, completedRetentionSeconds=60)
    own.push(queue, "done", "not done")
    own.ack(own.take(queue)[0])
    age(connection, 120)
    eventually(lambda: count(connection) == 1)
    assert payloads_of(own.take(queue)) == ["not done"]


def test_a_message_that_one_group_has_not_completed_is_kept(
    own: Api, queue: str, connection: psycopg.Connection
) -> None:
    own.configure(queue, retentionEnabled=True, completedRetentionSeconds=60)
    own.push(queue, 1, 2)
    one, _ = own.take(queue, batch=2, consumerGroup="slow")
    own.ack(one, consumerGroup="slow")
    own.drain(queue, 2, consumerGroup="quick")
    age(connection, 120)
    eventually(lambda: count(connection) == 1)
    own.seek("slow", queue, timestamp="2001-01-01T00:00:00Z")
    assert payloads_of(own.take(queue, batch=9, consumerGroup="slow")) == [2]


def test_a_transaction_id_is_free_again_after_retention(
    own: Api, queue: str, connection: psycopg.Connection
) -> None:
    own.configure(queue, retentionEnabled=True, retentionSeconds=60)
    item = {"queue": queue, "payload": 1, "transactionId": "same"}
    own.push_items([item])
    age(connection, 120)
    eventually(lambda: count(connection) == 0)
    assert own.push_items([item]).json()[0]["status"] == "queued"


def test_one_slow_run_of_retention_does_not_put_off_the_next(
    own: Api, queue: str, connection: psycopg.Connection, module_database: str
) -> None:
    """It waited for another session; that is no reason to run less often."""
    own.configure(queue, retentionEnabled=True, retentionSeconds=60)
    with psycopg.connect(module_database) as blocker:
        blocker.execute("LOCK TABLE queenspark.deleted_queues IN ACCESS EXCLUSIVE MODE")
        eventually(lambda: waiting_for_a_lock(connection))
        time.sleep(1.5)
    own.push(queue, "too old")
    age(connection, 120)
    eventually(lambda: count(connection) == 0, within=10)


def test_one_slow_sample_does_not_hold_safe_time_back(
    own: Api, connection: psycopg.Connection, module_database: str
) -> None:
    with psycopg.connect(module_database) as blocker:
        blocker.execute("LOCK TABLE queenspark.looks IN ACCESS EXCLUSIVE MODE")
        eventually(lambda: waiting_for_a_lock(connection))
        time.sleep(1.5)
    released = time.time()

    def has_moved() -> bool:
        return datetime.fromisoformat(own.read("/api/v1/status")["safeTime"]).timestamp() > released + 1

    eventually(has_moved, within=10)
