"""Encryption at rest: unreadable in PostgreSQL, readable through the API."""

import base64
import os
from collections.abc import Iterator

import psycopg
import pytest

from tests.conftest import StartBroker
from tests.wire.api import Api, payloads_of, refused

SECRET = "the cat sleeps at noon"


def new_key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


def stored(database: str, queue: str) -> str:
    """Everything that the log holds of queues whose names begin so, as text."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT m::text FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
            " WHERE starts_with(q.name, %s)",
            [queue],
        ).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.fixture(scope="module")
def own(module_broker: StartBroker) -> Iterator[Api]:
    """The API of a broker that has a key, for all tests here."""
    with Api(module_broker(encryption_key=new_key()).url) as api:
        yield api


def test_without_a_key_encryption_is_refused_with_the_reason(api: Api, queue: str) -> None:
    body = {"queue": queue, "options": {"encryptionEnabled": True}}
    assert "key" in refused(api.post("/api/v1/configure", body), 400).lower()


def test_the_payload_of_an_encrypted_queue_is_unreadable_in_the_database(
    own: Api, queue: str, module_database: str
) -> None:
    own.configure(queue, encryptionEnabled=True)
    own.push(queue, {"secret": SECRET})
    own.push(f"{queue}-plain", {"secret": SECRET.upper()})
    everything = stored(module_database, queue)
    assert not contains(everything, SECRET)
    assert contains(everything, SECRET.upper()), "this test can see unencrypted text"


def contains(everything: str, text: str) -> bool:
    """Whether the text is stored, in plain or in the hex format of bytea."""
    return text in everything or text.encode().hex() in everything


def test_an_encrypted_message_is_delivered_as_it_was_pushed(own: Api, queue: str) -> None:
    own.configure(queue, encryptionEnabled=True)
    own.push(queue, {"secret": SECRET}, None, [1, 2])
    assert payloads_of(own.take(queue, batch=9)) == [{"secret": SECRET}, None, [1, 2]]


def test_equal_payloads_are_stored_differently(own: Api, queue: str, module_database: str) -> None:
    own.configure(queue, encryptionEnabled=True)
    own.push(queue, SECRET, SECRET)
    with psycopg.connect(module_database) as connection:
        row = connection.execute(
            "SELECT count(DISTINCT payload::text) FROM queenspark.messages m"
            " JOIN queenspark.queues q ON q.id = m.queue_id WHERE q.name = %s",
            [queue],
        ).fetchone()
    assert row == (2,)


def test_messages_from_before_and_after_switching_are_both_read(own: Api, queue: str) -> None:
    own.push(queue, "plain")
    own.configure(queue, encryptionEnabled=True)
    own.push(queue, "encrypted")
    own.configure(queue, encryptionEnabled=False)
    own.push(queue, "plain again")
    assert payloads_of(own.drain(queue, 3)) == ["plain", "encrypted", "plain again"]


def test_a_dead_letter_of_an_encrypted_queue_can_be_read(own: Api, queue: str, module_database: str) -> None:
    own.configure(queue, encryptionEnabled=True)
    own.push(queue, SECRET)
    own.ack(own.take(queue)[0], "dlq")
    assert payloads_of(own.dead_letters(queue)) == [SECRET]
    assert not contains(stored(module_database, queue), SECRET)


def test_another_broker_with_the_same_key_reads_it(broker: StartBroker, queue: str) -> None:
    key = new_key()
    with Api(broker(encryption_key=key).url) as one, Api(broker(encryption_key=key).url) as other:
        one.configure(queue, encryptionEnabled=True)
        one.push(queue, SECRET)
        assert payloads_of(other.take(queue)) == [SECRET]


def test_keys_are_rotated_and_old_messages_stay_readable(broker: StartBroker, queue: str) -> None:
    old, new = new_key(), new_key()

    def pushed_and_read(keys: str, number: int) -> list[int]:
        started = broker(encryption_key=keys)
        with Api(started.url) as api:
            api.configure(queue, encryptionEnabled=True)
            api.push(queue, {"secret": SECRET, "n": number})
            messages = api.read("/api/v1/messages", queue=queue)["messages"][::-1]
        started.stop()
        return [message["data"]["n"] for message in messages]

    assert pushed_and_read(old, 1) == [1]
    assert pushed_and_read(f"{old},b:{new}", 2) == [1, 2]
    assert pushed_and_read(f"b:{new},{old}", 3) == [1, 2, 3]
    third = broker(encryption_key=f"b:{new}")
    everything = stored(third.database_url, queue)
    assert everything.count("b:") == 1
    assert not contains(everything, SECRET)
    with Api(third.url) as api:
        assert "a key without an id" in refused(api.get("/api/v1/messages", queue=queue), 400)
        api.configure(queue, encryptionEnabled=True, retryLimit=1)
        api.push(queue, {"n": 4})
    with Api(broker(encryption_key=f"c:{old}").url) as api:
        assert "the key b" in refused(api.get("/api/v1/messages", queue=queue, limit=1), 400)
