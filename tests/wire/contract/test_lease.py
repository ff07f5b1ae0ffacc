"""Leases: extending, expiring, and never being shortened."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.wire.api import Api, Json, payloads_of, refused, responded


def seconds_left(response: Json) -> float:
    expires = datetime.fromisoformat(response["newExpiresAt"])
    return (expires - datetime.now(UTC)).total_seconds()


def extend(api: Api, lease: str, body: dict[str, Any] | None = None) -> Json:
    return responded(api.post(f"/api/v1/lease/{lease}/extend", body), 200)


@pytest.mark.parametrize("body", [None, {}, {"seconds": 60}, {"seconds": 60, "colour": "red"}])
def test_a_lease_is_extended(api: Api, queue: str, body: dict[str, Any] | None) -> None:
    api.configure(queue, leaseTime=30)
    api.push(queue, 1)
    lease = api.take(queue)[0]["leaseId"]
    response = extend(api, lease, body)
    assert response["leaseId"] == lease
    assert response["success"] is True
    assert response["renewed"]
    assert response["newExpiresAt"] == response["expiresAt"] == response["lease_expires_at"]
    assert 25 < seconds_left(response) <= 61


def test_an_extended_lease_outlives_its_first_term(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=3)
    api.push(queue, 1)
    message = api.take(queue)[0]
    extend(api, message["leaseId"], {"seconds": 60})
    assert api.pop(queue, wait="true", timeout=3500).status_code == 204
    assert api.ack(message)["success"] is True


def test_extending_never_shortens_a_lease(api: Api, queue: str) -> None:
    api.push(queue, 1)
    lease = api.take(queue)[0]["leaseId"]
    assert seconds_left(extend(api, lease, {"seconds": 5})) > 290


def test_one_call_extends_the_lease_on_every_claimed_partition(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=3)
    for name in "ab":
        api.push(queue, name, partition=name)
    messages = api.take(queue, partitions=2, batch=2)
    extend(api, messages[0]["leaseId"], {"seconds": 60})
    assert api.pop(queue, wait="true", timeout=3500).status_code == 204
    api.complete(messages)


@pytest.mark.parametrize(
    "lease", ["0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01", "not-a-lease", "7", "%20", "a%2Fb"]
)
def test_an_unknown_lease_cannot_be_extended(api: Api, lease: str) -> None:
    refused(api.post(f"/api/v1/lease/{lease}/extend", {}), 404)


def test_a_released_lease_cannot_be_extended(api: Api, queue: str) -> None:
    api.push(queue, 1)
    message = api.take(queue)[0]
    api.ack(message)
    refused(api.post(f"/api/v1/lease/{message['leaseId']}/extend", {}), 404)


def test_an_expired_lease_cannot_be_extended(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=1)
    api.push(queue, 1)
    stale = api.take(queue)[0]
    api.take(queue)
    refused(api.post(f"/api/v1/lease/{stale['leaseId']}/extend", {}), 404)


@pytest.mark.parametrize("seconds", [-1, 0, "long", 1e12])
def test_an_extension_that_makes_no_sense_is_refused_by_name(api: Api, queue: str, seconds: object) -> None:
    api.push(queue, 1)
    lease = api.take(queue)[0]["leaseId"]
    assert "seconds" in refused(api.post(f"/api/v1/lease/{lease}/extend", {"seconds": seconds}), 400)


def test_an_expired_lease_cannot_be_extended_even_if_not_taken_over(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=1)
    api.push(queue, 1)
    lease = api.take(queue)[0]["leaseId"]
    assert api.pop(f"{queue}-other", wait="true", timeout=1200).status_code == 204
    refused(api.post(f"/api/v1/lease/{lease}/extend", {}), 404)


def test_an_expired_lease_means_redelivery(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=1)
    api.push(queue, 1, 2)
    leased = time.monotonic()
    first = api.take(queue, batch=2)
    again = api.take(queue, batch=2)
    assert time.monotonic() - leased > 0.9
    assert payloads_of(again) == payloads_of(first) == [1, 2]
    assert again[0]["leaseId"] != first[0]["leaseId"]


def test_the_holder_of_a_lease_is_shown_while_it_lives(api: Api, queue: str) -> None:
    group = f"g-{queue}"
    api.push(queue, 1)
    message = api.take(queue, consumerGroup=group, consumerId="worker-1")[0]
    shown = responded(api.get(f"/api/v1/consumer-groups/{group}"), 200)["queues"][0]["places"][0]
    assert shown["leaseHolder"] == "worker-1"
    assert datetime.fromisoformat(shown["leasedAt"]) <= datetime.now(UTC)
    assert datetime.fromisoformat(shown["leaseExpiresAt"]) > datetime.now(UTC)
    assert api.ack(message, consumerGroup=group)["success"] is True
    shown = responded(api.get(f"/api/v1/consumer-groups/{group}"), 200)["queues"][0]["places"][0]
    assert (shown["leaseHolder"], shown["leasedAt"]) == (None, None)


def test_a_consumer_id_is_a_name(api: Api, queue: str) -> None:
    assert "consumerId" in refused(api.pop(queue, consumerId="x" * 256), 400)


def test_a_lease_of_more_than_a_day_is_refused_with_a_hint(api: Api, queue: str) -> None:
    api.push(queue, 1)
    lease = api.pop(queue).json()["leaseId"]
    response = api.post(f"/api/v1/lease/{lease}/extend", {"seconds": 90_000})
    assert response.status_code == 400
    assert response.json()["error"] == (
        "seconds (90000) must not exceed 86400, a day; it is in seconds, not milliseconds"
    )
    response = api.post("/api/v1/configure", {"queue": queue, "options": {"leaseTime": 300_000}})
    assert (response.status_code, "leaseTime (300000)" in response.json()["error"]) == (400, True)
    response = api.post("/api/v1/stream/renew-lease", {"leaseId": lease, "extend_ms": 86_400_001})
    assert (response.status_code, "not seconds" in response.json()["error"]) == (400, True)
    assert api.post(f"/api/v1/lease/{lease}/extend", {"seconds": 86_400}).status_code == 200
