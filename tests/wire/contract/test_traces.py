"""Traces: notes of consumers on a message, found by message and by name."""

from typing import Any

import pytest

from tests.wire.api import Api, Json, Message, refused


def note(api: Api, message: Message, **fields: Any) -> Json:
    body = {
        "transactionId": message["transactionId"],
        "partitionId": message["partitionId"],
        "data": {"step": 1},
        **fields,
    }
    response = api.post("/api/v1/traces", body)
    assert response.status_code == 201, response.text
    noted: Json = response.json()
    return noted


@pytest.fixture
def message(api: Api, queue: str) -> Message:
    api.push(queue, 1)
    return api.take(queue)[0]


def test_a_trace_is_found_by_its_message(api: Api, message: Message) -> None:
    note(api, message, consumerGroup="g", eventType="info", data={"step": "parsed"})
    path = f"/api/v1/traces/{message['partitionId']}/{message['transactionId']}"
    traces = api.read(path)["traces"]
    assert len(traces) == 1
    assert traces[0]["data"] == {"step": "parsed"}
    assert traces[0]["eventType"] == "info"
    assert traces[0]["consumerGroup"] == "g"


def test_a_trace_is_found_by_each_of_its_names(api: Api, queue: str, message: Message) -> None:
    names = [f"order-{queue}", f"customer {queue}"]
    note(api, message, traceNames=names)
    for name in names:
        traces = api.read(f"/api/v1/traces/by-name/{name}")["traces"]
        assert [trace["transactionId"] for trace in traces] == [message["transactionId"]]


def test_trace_names_are_listed(api: Api, queue: str, message: Message) -> None:
    note(api, message, traceNames=[f"order-{queue}"])
    assert f"order-{queue}" in str(api.read("/api/v1/traces/names"))


@pytest.mark.parametrize("missing", ["transactionId", "partitionId", "data"])
def test_a_trace_names_its_message_and_has_data(api: Api, message: Message, missing: str) -> None:
    body = {"transactionId": message["transactionId"], "partitionId": message["partitionId"], "data": {}}
    del body[missing]
    assert missing in refused(api.post("/api/v1/traces", body), 400)
