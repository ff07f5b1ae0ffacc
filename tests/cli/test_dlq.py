"""`queenspark dlq`."""

import httpx2
import pytest

from tests.broker_process import Broker
from tests.command import Command

DeadLetter = dict[str, str]


@pytest.fixture
def letters(queenspark: Command, shared_broker: Broker, queue: str) -> list[DeadLetter]:
    """Three dead letters of the group `g`."""
    queenspark("push", queue, stdin=b"1\n2\n3\n")
    messages: list[DeadLetter] = queenspark(
        "pop", queue, "--batch", "3", "--group", "g", "--no-ack", "--json"
    ).json_lines()
    names = ("transactionId", "partitionId", "leaseId")
    acks = [{**{name: m[name] for name in names}, "status": "dlq", "error": "no [good]"} for m in messages]
    body = {"consumerGroup": "g", "acknowledgments": acks}
    results = httpx2.post(f"{shared_broker.url}/api/v1/ack/batch", json=body).json()
    assert [result["dlq"] for result in results] == [True, True, True]
    return messages


def total(queenspark: Command, queue: str) -> int:
    count: int = queenspark("dlq", "--queue", queue, "--json").json()["total"]
    return count


def test_dead_letters_are_listed_with_their_error(
    queenspark: Command, queue: str, letters: list[DeadLetter]
) -> None:
    result = queenspark("dlq", "--queue", queue)
    assert result.code == 0
    assert result.out.count("no [good]") == 3
    assert letters[0]["transactionId"] in result.out
    assert "3 of 3 dead letters" in result.err


def test_the_list_can_be_paged(queenspark: Command, queue: str, letters: list[DeadLetter]) -> None:
    page = queenspark("dlq", "list", "--queue", queue, "--limit", "2", "--offset", "2", "--json").json()
    assert (len(page["messages"]), page["total"]) == (1, 3)


def test_a_filter_that_matches_nothing_lists_nothing(
    queenspark: Command, queue: str, letters: list[DeadLetter]
) -> None:
    for chosen in (["--group", "other"], ["--partition", "other"], ["--until", "2001-01-01T00:00:00Z"]):
        assert "No dead letters" in queenspark("dlq", "--queue", queue, *chosen).err


def test_one_is_shown(queenspark: Command, letters: list[DeadLetter]) -> None:
    result = queenspark("dlq", "show", letters[0]["partitionId"], letters[0]["transactionId"])
    assert result.code == 0
    assert letters[0]["transactionId"] in result.out


def test_one_is_put_back(queenspark: Command, queue: str, letters: list[DeadLetter]) -> None:
    result = queenspark("dlq", "retry", letters[1]["partitionId"], letters[1]["transactionId"])
    assert (result.code, result.err) == (0, "Retried 1 dead letter.\n")
    (message,) = queenspark("pop", queue, "--group", "g", "--batch", "9", "--json").json_lines()
    assert message["data"] == 2


def test_all_that_match_are_put_back_after_a_yes(
    queenspark: Command, queue: str, letters: list[DeadLetter]
) -> None:
    assert queenspark("dlq", "retry", "--queue", queue).code == 2
    result = queenspark("dlq", "retry", "--queue", queue, "--group", "g", "--yes")
    assert (result.code, result.err) == (0, "Retried 3 dead letters.\n")
    messages = queenspark("pop", queue, "--group", "g", "--batch", "9", "--json").json_lines()
    assert [message["data"] for message in messages] == [1, 2, 3]


def test_one_is_deleted_after_a_yes(queenspark: Command, queue: str, letters: list[DeadLetter]) -> None:
    name = [letters[0]["partitionId"], letters[0]["transactionId"]]
    assert queenspark("dlq", "delete", *name).code == 2
    assert queenspark("dlq", "delete", *name, "--yes").code == 0
    assert total(queenspark, queue) == 2


def test_all_that_match_are_deleted_after_a_yes(
    queenspark: Command, queue: str, letters: list[DeadLetter]
) -> None:
    result = queenspark("dlq", "delete", "--queue", queue, "--yes")
    assert (result.code, result.err) == (0, "Deleted 3 dead letters.\n")
    assert total(queenspark, queue) == 0
    assert queenspark("dlq", "delete", "--queue", queue, "--yes").code == 3


@pytest.mark.parametrize("action", ["retry", "delete"])
def test_neither_a_name_nor_a_filter_is_a_usage_error(queenspark: Command, action: str) -> None:
    assert queenspark("dlq", action, "--yes").code == 2
    assert queenspark("dlq", action, "1", "--yes").code == 2


def test_an_unknown_dead_letter_is_refused(queenspark: Command, letters: list[DeadLetter]) -> None:
    assert queenspark("dlq", "retry", letters[0]["partitionId"], "unknown").code == 1
