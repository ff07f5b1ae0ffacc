"""API keys: made, shown once, used, limited, expired and revoked."""

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import psycopg
import pytest

from queenspark.broker.access.known_keys import KnownKeys
from queenspark.store.store import Store
from tests.access.conftest import As, make_key
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api, refused, responded
from tests.wire.deadline import eventually
from tests.wire.raw_connection import RawConnection

KEYS = "/api/v1/keys"
ME = "/api/v1/me"
MakeKey = Callable[..., str]


def test_a_key_is_shown_once_and_stored_as_a_hash(admin: Api, as_: As, closed: Broker) -> None:
    body = {"name": "orders", "scopes": ["queue:orders.*:push"], "requestsPerSecond": 50}
    made = responded(admin.post(KEYS, body), 201)
    secret = made["key"].split("_", 2)[2]
    assert len(secret) == 43
    listed = admin.get(KEYS, search="orders")
    assert secret not in listed.text
    (shown,) = listed.json()["keys"]
    assert shown == {key: value for key, value in made.items() if key != "key"}
    assert shown["createdBy"] == "root"
    with psycopg.connect(closed.database_url) as connection:
        row = connection.execute(
            "SELECT k::text FROM queenspark.api_keys k WHERE id = %s", (made["id"],)
        ).fetchone()
    assert row is not None
    assert secret not in row[0]
    assert as_(made["key"]).read(ME)["scopes"] == ["queue:orders.*:push"]


def test_a_key_is_taken_from_either_header(closed: Broker, key: MakeKey) -> None:
    good = key("either", role="read-only")
    with Api(closed.url) as api:

        def status(*headers: tuple[str, str]) -> int:
            return api.http.get(ME, headers=list(headers)).status_code

        assert status(("Authorization", f"Bearer {good}")) == 200
        assert status(("authorization", f"bearer   {good}")) == 200
        assert status(("X-API-Key", good)) == 200
        assert status() == 401
        assert status(("Authorization", f"Basic {good}")) == 401
        assert status(("Authorization", good)) == 401
        assert status(("Authorization", "Bearer")) == 401
        # Proxies and servers disagree on which of two counts.
        assert status(("Authorization", f"Bearer {good}"), ("X-API-Key", good)) == 401
        assert status(("Authorization", f"Bearer {good}"), ("Authorization", f"Bearer {good}")) == 401


def test_a_key_with_a_wrong_secret_is_401(closed: Broker, key: MakeKey) -> None:
    good = key("wrong", role="admin")
    head, id_, secret = good.split("_", 2)
    with Api(closed.url) as api:
        for wrong in (f"{head}_{id_}_{secret[:-1]}", f"{head}_{id_}_", f"{head}_{id_}", f"{head}_0_{secret}"):
            assert "not valid" in refused(api.http.get(ME, headers={"X-API-Key": wrong}), 401)


def test_invalid_keys_are_400(admin: Api) -> None:
    assert "name is required" in refused(admin.post(KEYS, {}), 400)
    neither = "role or scopes is required: pass role (read-only, read-write or admin), scopes, or both"
    assert neither in refused(admin.post(KEYS, {"name": "x"}), 400)
    assert neither in refused(admin.post(KEYS, {"name": "x", "scopes": []}), 400)
    assert "role must be" in refused(admin.post(KEYS, {"name": "x", "role": "root"}), 400)
    assert "is invalid: use" in refused(admin.post(KEYS, {"name": "x", "scopes": ["all"]}), 400)
    none = refused(admin.post(KEYS, {"name": "x", "role": "admin", "scopes": []}), 400)
    assert "omit scopes" in none
    over = {"name": "x", "role": "admin", "expiresAt": "2020-01-01T00:00:00Z"}
    assert "is in the past" in refused(admin.post(KEYS, over), 400)
    assert "does not exist" in refused(admin.delete(f"{KEYS}/nothing"), 404)


def test_a_revoked_key_is_rejected_at_once_on_every_broker(
    admin: Api, closed: Broker, module_broker: StartBroker
) -> None:
    other = module_broker(access_control="true")
    made = responded(admin.post(KEYS, {"name": "leaked", "role": "admin"}), 201)
    with Api(closed.url) as here, Api(other.url) as there:
        for api in (here, there):
            api.http.headers["Authorization"] = f"Bearer {made['key']}"
            api.read(ME)
        responded(admin.delete(f"{KEYS}/{made['id']}"), 200)
        began = time.monotonic()
        assert here.get(ME).status_code == 401
        eventually(lambda: there.get(ME).status_code == 401)
        assert time.monotonic() - began < 5
        assert admin.get(KEYS, search="leaked").json()["keys"][0]["revokedAt"] is not None


def test_a_poll_that_waits_gets_nothing_after_its_key_was_revoked(
    admin: Api, as_: As, closed: Broker, queue: str
) -> None:
    admin.push(queue, "first")
    assert admin.take(queue, consumerGroup="g", autoAck="true")
    made = responded(admin.post(KEYS, {"name": "waiting", "role": "read-write"}), 201)
    path = f"/api/v1/pop/queue/{queue}?wait=true&timeout=10000&consumerGroup=g"
    with RawConnection(closed.port) as waiting, RawConnection(closed.port) as behind:
        waiting.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {made['key']}\r\n\r\n".encode())
        eventually(lambda: admin.parked() == 1)
        good = admin.http.headers["Authorization"]
        behind.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {good}\r\n\r\n".encode())
        eventually(lambda: admin.parked() == 2)
        responded(admin.delete(f"{KEYS}/{made['id']}"), 200)
        admin.push(queue, "second")
        assert waiting.status() == 401
        assert behind.status() == 200


def test_parked_polls_with_fewer_rights_do_not_block_others(
    admin: Api, as_: As, key: MakeKey, closed: Broker, queue: str
) -> None:
    admin.configure(queue, namespace=f"n {queue}")
    narrow = key("narrow", scopes=["queue:elsewhere:consume"])
    path = f"/api/v1/pop?namespace=n%20{queue}&wait=true&timeout=10000&consumerGroup=g"
    with RawConnection(closed.port) as first, RawConnection(closed.port) as second:
        for connection, credential in ((first, narrow), (second, key("wide", role="read-write"))):
            connection.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {credential}\r\n\r\n".encode())
            eventually(lambda: admin.parked() >= 1)
        eventually(lambda: admin.parked() == 2)
        admin.push(queue, 1)
        assert second.status() == 200


def test_a_key_revoked_without_a_notification_is_rejected_too(closed: Broker, as_: As) -> None:
    made, text = make_key(closed.database_url, "silent", role="read-only")
    as_(text).read(ME)
    with psycopg.connect(closed.database_url, autocommit=True) as connection:
        connection.execute("UPDATE queenspark.api_keys SET revoked_at = now() WHERE id = %s", (made.id,))
    began = time.monotonic()
    eventually(lambda: as_(text).get(ME).status_code == 401)
    assert time.monotonic() - began < 5


def test_a_key_expires(as_: As, key: MakeKey) -> None:
    soon = key("soon", role="read-only", expires_at=datetime.now(UTC) + timedelta(seconds=1))
    as_(soon).read(ME)
    eventually(lambda: as_(soon).get(ME).status_code == 401)


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_a_key_expires_by_the_clock_of_the_database(
    closed: Broker, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """Whatever the clock of the broker's machine: a valid key is cached, an expired one is not."""
    clock = SimpleNamespace(time=lambda: time.time() + ahead, monotonic=time.monotonic)
    monkeypatch.setattr("queenspark.broker.access.known_keys.time", clock)
    now = datetime.now(UTC)
    _, hour = make_key(closed.database_url, "hour", role="admin", expires_at=now + timedelta(minutes=59))
    soon = now + timedelta(seconds=3)
    _, seconds = make_key(closed.database_url, "seconds", role="admin", expires_at=soon)

    async def check() -> None:
        store = Store(closed.database_url, pool_size=2)
        await store.open()
        try:
            keys = KnownKeys(store.api_keys)
            known, brief = await keys.check(hour), await keys.check(seconds)
            assert (known.is_good(), brief.is_good()) == (True, True)
            await asyncio.sleep(max(0, (soon - datetime.now(UTC)).total_seconds()))
            assert not brief.is_good()
            await keys.refresh()
            assert known.is_good()
        finally:
            await store.close()

    asyncio.run(check())


def test_the_last_use_is_recorded(admin: Api, as_: As, key: MakeKey) -> None:
    used = key("used", role="read-only")
    key("unused", role="read-only")
    as_(used).read(ME)
    eventually(lambda: admin.get(KEYS, search="used", sort="-name").json()["keys"][0]["lastUsedAt"])
    assert admin.get(KEYS, search="unused").json()["keys"][0]["lastUsedAt"] is None


def test_only_administrators_without_scopes_see_keys(as_: As, key: MakeKey) -> None:
    for options in (
        {"role": "read-write"},
        {"role": "admin", "scopes": ["queues:*"]},
        {"scopes": ["system:*"]},
    ):
        api = as_(key("no admin", **options))
        for response in (
            api.get(KEYS),
            api.post(KEYS, {"name": "x", "role": "admin"}),
            api.delete(f"{KEYS}/x"),
        ):
            assert "lacks the right access:admin" in refused(response, 403)


def test_messages_carry_their_producer(as_: As, key: MakeKey, queue: str) -> None:
    api = as_(key("producer", role="admin"))
    api.push_items(
        [{"queue": queue, "payload": 1, "headers": {"tenant": "north"}}, {"queue": queue, "payload": 2}]
    )
    first, second = api.read("/api/v1/messages", queue=queue)["messages"][::-1]
    assert (first["producerSub"], first["headers"]) == ("producer", {"tenant": "north"})
    assert second["producerSub"] == "producer"
    assert "headers" not in second
    (popped,) = api.take(queue, consumerGroup="g")
    assert (popped["producerSub"], popped["headers"]) == ("producer", {"tenant": "north"})
    assert api.ack(popped, "dlq", consumerGroup="g")["dlq"]
    assert api.dead_letters(queue)[0]["producerSub"] == "producer"
    rows = f"rows_of_{queue.replace('-', '_')}"
    sql = f"CREATE STREAM {rows} (n INT) WITH (queue = '{queue}'); INSERT INTO {rows} VALUES (3)"
    responded(api.post("/api/v1/sql", {"sql": sql}), 200)
    assert api.read("/api/v1/messages", queue=queue)["messages"][0]["producerSub"] == "producer"
    forged = api.push_items([{"queue": queue, "payload": 1, "headers": {"_producer": "somebody else"}}])
    assert "reserved" in refused(forged, 400)


def test_requests_and_messages_of_a_key_are_limited(as_: As, key: MakeKey, queue: str) -> None:
    slow = as_(key("slow", role="read-write", requests_per_second=3))
    responses = [slow.get(ME) for _ in range(8)]
    assert [response.status_code for response in responses[:3]] == [200] * 3
    late = next(response for response in responses if response.status_code == 429)
    assert late.json()["code"] == "rate_limited"
    assert late.json()["retryable"]
    assert int(late.headers["retry-after"]) >= 1
    lacking = as_(key("lacking", scopes=["queue:mine:read"], requests_per_second=3))
    statuses = [lacking.get("/api/v1/resources/queues/theirs").status_code for _ in range(5)]
    assert statuses[:3] == [404] * 3
    assert 429 in statuses
    assert 429 in [lacking.get(KEYS).status_code for _ in range(5)]
    few = as_(key("few", role="read-write", messages_per_second=5))
    few.push(queue, *range(20))
    response = few.push_items([{"queue": queue, "payload": 1}])
    assert "5 messages per second" in refused(response, 429)
    assert int(response.headers["retry-after"]) >= 2
    few.read(ME)


def test_messages_that_a_key_receives_are_limited_too(admin: Api, as_: As, key: MakeKey, queue: str) -> None:
    admin.push(queue, *range(20))
    few = as_(key("few received", role="read-write", messages_per_second=5))
    messages = few.take(queue, batch=20, consumerGroup="g")
    assert len(messages) > 5
    response = few.pop(queue, consumerGroup="g")
    assert "5 messages per second" in refused(response, 429)
    assert int(response.headers["retry-after"]) >= 2
    assert response.json()["code"] == "rate_limited"
    refused(few.push_items([{"queue": queue, "payload": 1}]), 429)
    # What was delivered can be finished.
    few.complete(messages, "g")


def test_windows_that_a_key_receives_are_limited_too(
    admin: Api, as_: As, key: MakeKey, closed: Broker
) -> None:
    with closing(StreamApi(admin, closed.database_url)) as stream:
        stream.define(partitioned=True)
        stream.seal(stream.over(stream.push(*range(20))))
        few = as_(key("few windows", role="read-write", messages_per_second=5))
        poll = {"streamName": stream.name, "consumerGroup": "g"}
        window = responded(few.post("/api/v1/stream/poll", poll), 200)["window"]
        assert len(window["messages"]) == 20
        assert "5 messages per second" in refused(few.post("/api/v1/stream/poll", poll), 429)
        refused(few.get(f"/api/v1/stream/window/{window['leaseId']}/messages"), 429)
        responded(few.post("/api/v1/stream/ack", {"leaseId": window["leaseId"]}), 200)
