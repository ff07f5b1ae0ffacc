"""The audit log: denied acts, and the addresses of acts."""

import time
from collections.abc import Callable
from uuid import uuid4

import pytest

from queenspark.broker.access import denials
from queenspark.broker.access.denials import Denial, Denials
from queenspark.broker.http import Call
from tests.access.conftest import As
from tests.wire.api import Api, Json, refused, responded

MakeKey = Callable[..., str]
AUDIT = "/api/v1/audit"
KEYS = "/api/v1/keys"


@pytest.fixture
def name() -> str:
    """The name of a caller that no other test uses."""
    return f"caller {uuid4().hex[:8]}"


def acts(admin: Api, caller: str) -> list[Json]:
    """The acts of a caller, oldest first."""
    found: list[Json] = admin.read(AUDIT, caller=caller, limit=1000)["acts"]
    return found[::-1]


def test_denied_acts_are_recorded(as_: As, key: MakeKey, admin: Api, name: str) -> None:
    api = as_(key(name, role="read-only"))
    refused(api.post(KEYS, {"name": "mine", "role": "admin"}), 403)
    refused(api.delete("/api/v1/resources/queues/orders"), 403)
    refused(api.post("/api/v1/sql", {"sql": "DROP STREAM pages"}), 403)
    refused(api.get(AUDIT), 403)
    refused(api.push_items([{"queue": "orders", "payload": 1}]), 403)  # not administrative
    found = acts(admin, name)
    assert [(act["action"], act["subject"], act["status"]) for act in found] == [
        ("POST /api/v1/keys", None, 403),
        ("DELETE /api/v1/resources/queues/:queue", "orders", 403),
        ("POST /api/v1/sql", None, 403),
        ("GET /api/v1/audit", None, 403),
    ]
    assert {(act["kind"], act["address"]) for act in found} == {("key", "127.0.0.1")}


def test_a_source_that_needs_an_administrator_is_a_denied_act(
    as_: As, key: MakeKey, admin: Api, name: str
) -> None:
    api = as_(key(name, scopes=["jobs:admin"]))
    sql = "CREATE SOURCE files (n INT) WITH (connector = 'files', path = '/etc')"
    refused(api.post("/api/v1/sql", {"sql": sql}), 403)
    (act,) = acts(admin, name)
    assert (act["action"], act["status"]) == ("POST /api/v1/sql", 403)


def test_a_flood_of_denied_acts_is_one_entry(as_: As, key: MakeKey, admin: Api, name: str) -> None:
    api = as_(key(name, role="read-only"))
    for number in range(50):
        refused(api.delete(f"/api/v1/resources/queues/q{number}"), 403)
        refused(api.http.get(AUDIT, headers={"X-Forwarded-For": f"203.0.113.{number}"}), 403)
    assert len(acts(admin, name)) == 2


def test_repeated_denials_are_counted_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    counted, keys = Denials(), Denial("eve", "key", "GET /api/v1/keys")
    assert counted.is_first(keys, "192.0.2.1")
    assert [counted.is_first(keys, f"192.0.2.{number}") for number in (2, 3)] == [False, False]
    assert counted.is_first(keys._replace(caller="mallory"), "192.0.2.1")
    assert counted.repeated() == []
    now += denials.PERIOD_SECONDS + 1
    assert counted.repeated() == [(keys, "192.0.2.3", 2)]
    assert counted.repeated() == []
    assert counted.is_first(keys, "192.0.2.1")


def test_denials_of_many_callers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    counted = Denials()
    recorded = sum(counted.is_first(Denial(f"eve {n}", "token", "GET /"), "192.0.2.1") for n in range(10_000))
    assert recorded < 1000
    now += denials.PERIOD_SECONDS + 1
    ((others, _, count),) = counted.repeated()
    assert others.caller == "others"
    assert count == 10_000 - recorded


@pytest.mark.parametrize(
    ("forwarded", "origin"),
    [
        ([], "192.0.2.1"),
        (["203.0.113.7"], "192.0.2.1 for 203.0.113.7"),
        (["2001:DB8::7"], "192.0.2.1 for 2001:db8::7"),
        (["203.0.113.7, 198.51.100.2"], "192.0.2.1 for 203.0.113.7, 198.51.100.2"),
        (["203.0.113.7", "198.51.100.2"], "192.0.2.1 for 203.0.113.7, 198.51.100.2"),
        (["192.0.2.1"], "192.0.2.1"),
        (["<script>"], "192.0.2.1"),
        (["203.0.113.7 is not me"], "192.0.2.1"),
        (["unknown"], "192.0.2.1"),
        (["fe80::1%<script>"], "192.0.2.1"),
        ([", ".join(["203.0.113.7"] * 500)], "192.0.2.1 for 203.0.113.7, 203.0.113.7, 203.0.113.7"),
    ],
)
def test_an_address_names_the_forwarded_one_beside_the_verified_one(
    forwarded: list[str], origin: str
) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"method": "GET", "path": "/", "headers": headers, "client": ("192.0.2.1", 1)}

    async def receive() -> Json:
        raise AssertionError

    assert Call(scope, receive).origin == origin


def test_a_forwarded_address_does_not_replace_the_verified_one(
    as_: As, key: MakeKey, admin: Api, name: str
) -> None:
    api = as_(key(name, role="admin"))
    body = {"name": "made", "role": "read-only"}
    forged = {"X-Forwarded-For": "203.0.113.7"}
    made = responded(api.http.post(KEYS, json=body, headers=forged), 201)
    responded(api.delete(f"{KEYS}/{made['id']}"), 200)
    assert [act["address"] for act in acts(admin, name)] == ["127.0.0.1 for 203.0.113.7", "127.0.0.1"]
