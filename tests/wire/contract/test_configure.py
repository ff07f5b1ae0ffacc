"""Creating, configuring and deleting queues."""

from typing import Any

import pytest

from tests.wire.api import Api, name_in_path, refused, responded

DEFAULTS = {
    "leaseTime": 300,
    "retryLimit": 3,
    "retryDelay": 1000,
    "ttl": 3600,
    "maxSize": 0,
    "priority": 0,
    "delayedProcessing": 0,
    "windowBuffer": 0,
    "retentionSeconds": 0,
    "completedRetentionSeconds": 0,
    "retentionEnabled": False,
    "encryptionEnabled": False,
    "maxWaitTimeSeconds": 0,
}


def test_a_queue_is_created_with_every_option_at_its_default(api: Api, queue: str) -> None:
    response = responded(api.post("/api/v1/configure", {"queue": queue}), 200)
    assert response["configured"] is True
    assert response["queue"] == queue
    assert {name: response["options"][name] for name in DEFAULTS} == DEFAULTS
    assert {"deadLetterQueue", "dlqAfterMaxRetries"} <= response["options"].keys()


def test_the_response_has_the_stored_options(api: Api, queue: str) -> None:
    sent = {"leaseTime": 60, "retryLimit": 7, "retryDelay": 50, "maxSize": 9, "priority": 4, "ttl": 120}
    response = api.configure(queue, namespace="billing", task="invoice", **sent)
    assert response["namespace"] == "billing"
    assert response["task"] == "invoice"
    assert {name: response["options"][name] for name in sent} == sent


def test_options_not_sent_again_take_their_default(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=60, retryLimit=7)
    options = api.configure(queue, retryLimit=7)["options"]
    assert options["leaseTime"] == 300
    assert options["retryLimit"] == 7


@pytest.mark.parametrize("body", [{}, {"queue": None}, {"queue": ""}, {"options": {}}])
def test_a_queue_name_is_required(api: Api, body: dict[str, Any]) -> None:
    assert refused(api.post("/api/v1/configure", body), 400) == "queue is required"


def test_unknown_fields_and_options_are_ignored(api: Api, queue: str) -> None:
    body = {"queue": queue, "colour": "red", "options": {"leaseTime": 60, "shape": {"round": True}}}
    response = responded(api.post("/api/v1/configure", body), 200)
    assert response["options"]["leaseTime"] == 60
    assert "shape" not in response["options"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("leaseTime", "soon"),
        ("leaseTime", -1),
        ("retryLimit", -1),
        ("retryDelay", -5),
        ("maxSize", -1),
        ("ttl", "never"),
        ("delayedProcessing", -1),
        ("windowBuffer", -1),
        ("retentionSeconds", -1),
        ("retentionEnabled", "perhaps"),
        ("priority", "high"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(
    api: Api, queue: str, option: str, value: object
) -> None:
    body = {"queue": queue, "options": {option: value}}
    assert option in refused(api.post("/api/v1/configure", body), 400)


def test_deleting_a_queue_tells_that_it_existed(api: Api, queue: str) -> None:
    api.push(queue, 1)
    response = responded(api.delete(f"/api/v1/resources/queues/{queue}"), 200)
    assert (response["deleted"], response["queue"], response["existed"]) == (True, queue, True)


def test_deleting_a_queue_that_never_was_is_no_error(api: Api, queue: str) -> None:
    response = responded(api.delete(f"/api/v1/resources/queues/{queue}"), 200)
    assert (response["deleted"], response["queue"], response["existed"]) == (True, queue, False)


def test_a_queue_made_again_after_deletion_is_empty(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=60)
    api.push(queue, "before")
    api.delete(f"/api/v1/resources/queues/{queue}")
    api.push(queue, "after")
    assert [message["data"] for message in api.drain(queue, 1)] == ["after"]
    assert api.empty(queue)
    assert api.configure(queue)["options"]["leaseTime"] == 300


@pytest.mark.parametrize("name", ["with space", "größe", "a+b", "50%", "a/b", "q?x=1", "semi;colon", "a&b=c"])
def test_names_in_paths_are_percent_decoded(api: Api, queue: str, name: str) -> None:
    odd = f"{queue} {name}"
    api.push(odd, 1, partition=name)
    message = api.take(odd, name)[0]
    assert (message["queue"], message["partition"]) == (odd, name)
    response = responded(api.delete(f"/api/v1/resources/queues/{name_in_path(odd)}"), 200)
    assert (response["queue"], response["existed"]) == (odd, True)
