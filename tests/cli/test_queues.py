"""`queenspark queues`."""

import pytest

from tests.command import Command


@pytest.mark.parametrize("arguments", [["queues"], ["queues", "list"]])
def test_queues_are_listed_with_their_counts(queenspark: Command, queue: str, arguments: list[str]) -> None:
    queenspark("push", queue, stdin=b"1\n2\n")
    result = queenspark(*arguments, "--search", queue)
    assert result.code == 0
    (line,) = [line for line in result.out.splitlines() if queue in line]
    assert line.split()[1] == "1"


def test_the_list_is_available_as_json(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1")
    assert queue in [
        found["name"] for found in queenspark("queues", "--search", queue, "--json").json()["queues"]
    ]


def test_a_queue_is_created_with_its_options(queenspark: Command, queue: str) -> None:
    options = ["--lease-time", "60", "--retry-limit", "5", "--retention", "--retention-seconds", "3600"]
    response = queenspark("queues", "create", queue, "--namespace", "shop", *options, "--json").json()
    assert response["configured"] is True
    assert response["namespace"] == "shop"
    stored = response["options"]
    assert (stored["leaseTime"], stored["retryLimit"], stored["retentionSeconds"]) == (60, 5, 3600)
    assert stored["retentionEnabled"] is True


def test_every_option_of_create_is_one_that_the_broker_takes(queenspark: Command, queue: str) -> None:
    numbers = {
        "--retry-delay": "retryDelay",
        "--ttl": "ttl",
        "--max-size": "maxSize",
        "--priority": "priority",
        "--delayed-processing": "delayedProcessing",
        "--window-buffer": "windowBuffer",
        "--max-wait": "maxWaitTimeSeconds",
        "--completed-retention-seconds": "completedRetentionSeconds",
    }
    arguments = [word for option in numbers for word in (option, "7")]
    arguments += ["--task", "t", "--dead-letters", "--no-encryption", "--dead-letter-queue", f"{queue}-dead"]
    stored = queenspark("queues", "create", queue, *arguments, "--json").json()["options"]
    assert {stored[name] for name in numbers.values()} == {7}
    assert stored["dlqAfterMaxRetries"] is True
    assert stored["deadLetterQueue"] == f"{queue}-dead"


def test_a_queue_is_shown(queenspark: Command, queue: str) -> None:
    queenspark("queues", "create", queue, "--lease-time", "77")
    queenspark("push", queue, "1", "--partition", "customer-1")
    result = queenspark("queues", "show", queue)
    assert result.code == 0
    assert queue in result.out
    assert "77" in result.out
    assert "customer-1" in result.out


def test_an_unknown_queue_is_refused(queenspark: Command, queue: str) -> None:
    result = queenspark("queues", "show", queue)
    assert result.code == 1
    assert result.err.startswith("The broker rejected the request: ")


def test_a_deleted_queue_is_gone(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1")
    assert queenspark("queues", "delete", queue, "--yes").code == 0
    assert queenspark("pop", queue).code == 3
    assert queenspark("queues", "delete", queue, "--yes").code == 3


def test_nothing_is_deleted_without_a_yes(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1")
    result = queenspark("queues", "delete", queue)
    assert (result.code, "--yes" in result.err) == (2, True)
    assert queenspark("pop", queue).code == 0


def test_queues_are_searched_sorted_and_paged(queenspark: Command, queue: str) -> None:
    for name in ("-a", "-b", "-c"):
        queenspark("queues", "create", queue + name)
    result = queenspark("queues", "list", "--search", queue.upper(), "--sort=-name", "--limit", "2")
    assert [line.split()[0] for line in result.out.splitlines()[1:]] == [f"{queue}-c", f"{queue}-b"]
    assert "1 to 2 of 3; see --limit, --offset and --search." in result.err
    assert "No queue matches." in queenspark("queues", "--search", f"never-{queue}").err
