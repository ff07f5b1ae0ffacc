"""Text that could confuse a parser or a database: refused, or kept exactly."""

import json

import pytest

from tests.wire.api import Api, payloads_of, refused


@pytest.mark.parametrize("name", ["nul \u0000", "start \u0001", "x" * 10_000, "two\nlines"])
@pytest.mark.parametrize("field", ["transactionId", "traceId"])
def test_an_id_of_bad_length_or_characters_is_refused(api: Api, queue: str, field: str, name: str) -> None:
    item = {"queue": queue, "payload": 1, field: name}
    assert field.lower() in refused(api.push_items([item]), 400).lower()
    assert api.empty(queue)


def test_an_empty_transaction_id_is_refused_or_replaced(api: Api, queue: str) -> None:
    items = [{"queue": queue, "payload": number, "transactionId": ""} for number in range(2)]
    response = api.push_items(items)
    if response.status_code == 201:
        assert payloads_of(api.drain(queue, 2)) == [0, 1]
    else:
        refused(response, 400)


@pytest.mark.parametrize("character", range(1, 32))
def test_a_raw_control_character_in_a_payload_cannot_split_it(api: Api, queue: str, character: int) -> None:
    text = f"before{chr(character)}after"
    payloads = f'"{text}"'.encode(), b'"next"'
    items = b",".join(
        b'{"queue":"' + queue.encode() + b'","payload":' + payload + b"}" for payload in payloads
    )
    response = api.http.post("/api/v1/push", content=b'{"items":[' + items + b"]}")
    if response.status_code == 201:
        assert payloads_of(api.drain(queue, 2)) == [text, "next"]
    else:
        refused(response, 400)


@pytest.mark.parametrize("character", [0, 1, 31, 127, 0x2028, 0xFEFF, 0xFFFF, 0x1F41D])
def test_an_escaped_character_in_a_payload_is_kept(api: Api, queue: str, character: int) -> None:
    payload = {f"key {chr(character)}": f"value {chr(character)}"}
    content = json.dumps({"items": [{"queue": queue, "payload": payload}]})
    assert api.http.post("/api/v1/push", content=content).status_code == 201
    assert payloads_of(api.take(queue)) == [payload]


def test_half_a_surrogate_pair_is_refused_or_kept(api: Api, queue: str) -> None:
    content = b'{"items":[{"queue":"' + queue.encode() + b'","payload":"half \\ud83d of a pair"}]}'
    response = api.http.post("/api/v1/push", content=content)
    if response.status_code == 201:
        assert api.pop(queue, wait="true", timeout=5000).status_code == 200
    else:
        refused(response, 400)


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE queenspark.messages; --", '"}', "%s %(name)s {0}", "\\", "a\tb"]
)
def test_text_that_means_something_elsewhere_means_nothing_here(api: Api, queue: str, text: str) -> None:
    item = {"queue": queue, "payload": {text: text}, "transactionId": f"id {text}".replace("\t", " ")}
    assert api.push_items([item]).status_code == 201
    message = api.take(queue)[0]
    assert message["data"] == {text: text}
    assert api.ack(message, "dlq", error=text)["dlq"] is True
    assert [letter["errorMessage"] for letter in api.dead_letters(queue)] == [text]


@pytest.mark.parametrize("number", ["1e400", "-1e-400", "0.1000000000000000055511151231257827", "1" * 400])
def test_a_number_beyond_floats_is_refused_or_kept(api: Api, queue: str, number: str) -> None:
    content = b'{"items":[{"queue":"' + queue.encode() + b'","payload":' + number.encode() + b"}]}"
    response = api.http.post("/api/v1/push", content=content)
    if response.status_code == 201:
        assert f'"data":{number}' in api.pop(queue, wait="true", timeout=5000).text.replace(" ", "")
    else:
        refused(response, 400)
