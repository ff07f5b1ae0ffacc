"""`queenspark push`."""

import json

import pytest

from tests.command import Command


def popped(queenspark: Command, queue: str, batch: int = 1000) -> list[object]:
    result = queenspark("pop", queue, "--batch", str(batch), "--json")
    return [message["data"] for message in result.json_lines()]


@pytest.mark.parametrize("payload", ['{"a": [1, null]}', "7", '"text"', "null", "1.50"])
def test_a_payload_is_json(queenspark: Command, queue: str, payload: str) -> None:
    result = queenspark("push", queue, payload)
    assert (result.code, result.out) == (0, "")
    assert result.err == f"Pushed 1 message to {queue}.\n"
    assert popped(queenspark, queue) == [json.loads(payload)]


def test_partition_and_transaction_id_are_passed_on(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1", "--partition", "p/1", "--transaction-id", "t 1")
    (message,) = queenspark("pop", queue, "--json").json_lines()
    assert (message["partition"], message["transactionId"]) == ("p/1", "t 1")


def test_a_push_with_a_known_transaction_id_is_a_duplicate(queenspark: Command, queue: str) -> None:
    for known in (False, True):
        result = queenspark("push", queue, "1", "--transaction-id", "t")
        assert result.code == 0
        assert ("duplicate" in result.err) is known
    assert popped(queenspark, queue) == [1]


def test_each_line_of_standard_input_is_a_message(queenspark: Command, queue: str) -> None:
    lines = b'{"n": 1}\n\n{"n": 2}\r\n{"n": 3}'
    result = queenspark("push", queue, "-", "--batch-size", "2", stdin=lines)
    assert result.err == f"Pushed 3 messages to {queue}.\n"
    assert popped(queenspark, queue) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_line_that_is_not_json_is_refused_with_its_number(queenspark: Command, queue: str) -> None:
    result = queenspark("push", queue, stdin=b"1\n2\nthree\n4\n")
    assert result.code == 2
    assert "Line 3 is not valid JSON" in result.err
    assert "The 2 messages before it were pushed" in result.err
    assert popped(queenspark, queue) == [1, 2]


def test_a_payload_that_is_not_json_is_refused(queenspark: Command, queue: str) -> None:
    result = queenspark("push", queue, "{oops")
    assert (result.code, "not valid JSON" in result.err) == (2, True)
    assert queenspark("pop", queue).code == 3


def test_text_is_pushed_unchanged(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "--text", stdin="naïve, [bold]\n\nlast\n".encode())
    assert popped(queenspark, queue) == ["naïve, [bold]", "", "last"]


def test_text_that_is_not_utf_8_is_refused_with_its_line(queenspark: Command, queue: str) -> None:
    result = queenspark("push", queue, "--text", stdin=b"ok\n\xff\xfe\n")
    assert (result.code, "Line 2 is not valid UTF-8" in result.err) == (2, True)


@pytest.mark.parametrize("options", [[], ["--text"]])
@pytest.mark.parametrize("payload", ["\udcff", '"\udcff"'])
def test_an_argument_that_is_not_utf_8_is_refused(
    queenspark: Command, queue: str, payload: str, options: list[str]
) -> None:
    """The shell passes any bytes."""
    result = queenspark("push", queue, payload, *options)
    assert result.code == 2
    assert result.err.startswith("The payload is not ")
    assert "Nothing was pushed." in result.err


def test_a_transaction_id_is_for_a_single_message(queenspark: Command, queue: str) -> None:
    assert queenspark("push", queue, "--transaction-id", "t", stdin=b"1\n2\n").code == 2


def test_a_rejection_is_printed(queenspark: Command) -> None:
    result = queenspark("push", "q" * 10_000, "1")
    assert result.code == 1
    assert result.err.startswith("The broker rejected the request: ")


def test_json_prints_the_result_of_each_message(queenspark: Command, queue: str) -> None:
    results = queenspark("push", queue, "--json", stdin=b"1\n2\n").json_lines()
    assert [result["status"] for result in results] == ["queued", "queued"]


def test_headers_are_given_one_by_one(queenspark: Command, queue: str) -> None:
    headers = ("--header", "tenant=north", "--header", "query=a=b", "--header", "empty=")
    assert queenspark("push", queue, "-", *headers, stdin=b"1\n2\n").code == 0
    messages = queenspark("pop", queue, "--batch", "9", "--json").json_lines()
    assert [message["headers"] for message in messages] == [
        {"tenant": "north", "query": "a=b", "empty": ""}
    ] * 2


@pytest.mark.parametrize("header", ["tenant", "=north", ""])
def test_a_header_without_a_name_or_value_is_refused(queenspark: Command, queue: str, header: str) -> None:
    result = queenspark("push", queue, "1", "--header", header)
    assert (result.code, result.out) == (2, "")
    assert f"--header {header!r} is invalid: use NAME=VALUE." in result.err


def test_a_reserved_header_is_refused_with_the_fix(queenspark: Command, queue: str) -> None:
    result = queenspark("push", queue, "1", "--header", "_version=1")
    assert result.code != 0
    assert "reserved: choose another" in result.err
