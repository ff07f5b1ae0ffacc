"""Dead letters: list, inspect, return, delete."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.wire.api import Api, Json, payloads_of, responded


def bury(
    api: Api, queue: str, *payloads: object, partition: str = "Default", group: str | None = None
) -> None:
    """Push the payloads and make dead letters of them."""
    api.push(queue, *payloads, partition=partition)
    named = {} if group is None else {"consumerGroup": group}
    for _ in payloads:
        message = api.take(queue, partition, **named)[0]
        assert api.ack(message, "dlq", error=f"cannot do {message['data']}", **named)["dlq"] is True


def path_of(letter: Json) -> str:
    return f"/api/v1/messages/{letter['partitionId']}/{letter['transactionId']}"


def test_a_dead_letter_tells_where_it_came_from_and_why(api: Api, queue: str) -> None:
    bury(api, queue, "x", partition="p", group="g")
    response = api.read("/api/v1/dlq", queue=queue)
    assert (response["total"], response["offset"]) == (1, 0)
    assert response["limit"] >= 1
    letter = response["messages"][0]
    assert letter["queue"] == letter["queueName"] == queue
    assert letter["partition"] == letter["partitionName"] == "p"
    assert letter["consumerGroup"] == "g"
    assert letter["errorMessage"] == "cannot do x"
    assert letter["data"] == "x"
    assert letter["id"]
    assert letter["messageId"]
    assert letter["transactionId"]
    assert letter["partitionId"]
    assert "retryCount" in letter
    assert datetime.fromisoformat(letter["createdAt"]) <= datetime.fromisoformat(letter["failedAt"])


def test_dead_letters_are_filtered_by_group_and_partition(api: Api, queue: str) -> None:
    bury(api, queue, "one", partition="p1", group="g1")
    bury(api, queue, "two", partition="p2", group="g2")
    assert payloads_of(api.dead_letters(queue, consumerGroup="g1")) == ["one"]
    assert payloads_of(api.dead_letters(queue, partition="p2")) == ["two"]
    assert api.dead_letters(queue, partition="p2", consumerGroup="g1") == []


def test_dead_letters_are_filtered_by_time(api: Api, queue: str) -> None:
    bury(api, queue, "x")
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    around = {"from": (now - hour).isoformat(), "to": (now + hour).isoformat()}
    assert payloads_of(api.dead_letters(queue, **around)) == ["x"]
    assert api.dead_letters(queue, **{"from": (now + hour).isoformat()}) == []
    assert api.dead_letters(queue, to=(now - hour).isoformat()) == []


def test_dead_letters_are_paged(api: Api, queue: str) -> None:
    bury(api, queue, 1, 2, 3)
    pages = [payloads_of(api.dead_letters(queue, limit=2, offset=offset)) for offset in (0, 2, 4)]
    assert [len(page) for page in pages] == [2, 1, 0]
    assert sorted(pages[0] + pages[1]) == [1, 2, 3]
    assert api.read("/api/v1/dlq", queue=queue, limit=2)["total"] == 3


def test_a_dead_letter_put_back_is_delivered_again(api: Api, queue: str) -> None:
    bury(api, queue, "x", group="g")
    response = responded(api.post(f"{path_of(api.dead_letters(queue)[0])}/retry", {}), 200)
    assert response["success"] is True
    message = api.take(queue, consumerGroup="g")[0]
    assert message["data"] == "x"
    assert api.ack(message, consumerGroup="g")["success"] is True
    assert api.dead_letters(queue) == []
    assert api.empty(queue, consumerGroup="g")


def test_putting_back_touches_no_other_group(api: Api, queue: str) -> None:
    bury(api, queue, "x", group="g")
    api.drain(queue, 1, consumerGroup="other")
    api.post(f"{path_of(api.dead_letters(queue)[0])}/retry", {})
    assert api.empty(queue, consumerGroup="other")
    assert payloads_of(api.take(queue, consumerGroup="g")) == ["x"]


def test_a_message_that_is_no_dead_letter_cannot_be_put_back(api: Api, queue: str) -> None:
    pushed = api.push(queue, 1)[0]
    response = api.post(f"/api/v1/messages/{pushed['partition_id']}/{pushed['transaction_id']}/retry", {})
    assert response.status_code in (400, 404, 409)
    assert response.json()["error"]


def test_a_deleted_dead_letter_is_gone(api: Api, queue: str) -> None:
    bury(api, queue, 1, 2)
    one = next(letter for letter in api.dead_letters(queue) if letter["data"] == 1)
    responded(api.delete(path_of(one)), 200)
    assert payloads_of(api.dead_letters(queue)) == [2]


def test_a_message_is_shown(api: Api, queue: str) -> None:
    pushed = api.push(queue, {"n": 1}, partition="p")[0]
    found = api.read(f"/api/v1/messages/{pushed['partition_id']}/{pushed['transaction_id']}")
    assert found["transactionId"] == pushed["transaction_id"]
    assert found["partitionId"] == pushed["partition_id"]
    assert found["queue"] == queue
    assert found["partition"] == "p"
    assert found["data"] == {"n": 1}


def test_a_deleted_message_is_never_delivered(api: Api, queue: str) -> None:
    first, _ = api.push(queue, 1, 2)
    responded(api.delete(f"/api/v1/messages/{first['partition_id']}/{first['transaction_id']}"), 200)
    assert payloads_of(api.drain(queue, 1)) == [2]
    assert api.empty(queue)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/messages/nowhere/t",
        "/api/v1/messages/0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01/t",
        "/api/v1/messages/999999999/t",
    ],
)
def test_a_message_that_is_not_there_is_404(api: Api, path: str) -> None:
    for response in (api.get(path), api.delete(path), api.post(f"{path}/retry", {})):
        assert response.status_code == 404
        assert response.json()["error"]


def test_messages_are_browsed_by_queue_partition_and_status(api: Api, queue: str) -> None:
    api.push(queue, 1, 2, partition="p1")
    api.push(queue, 3, partition="p2")
    api.ack(api.take(queue, "p2")[0])
    everything = api.read("/api/v1/messages", queue=queue)["messages"]
    assert sorted(message["data"] for message in everything) == [1, 2, 3]
    in_p1 = api.read("/api/v1/messages", queue=queue, partition="p1")["messages"]
    assert sorted(message["data"] for message in in_p1) == [1, 2]
    pending = api.read("/api/v1/messages", queue=queue, status="pending")["messages"]
    assert sorted(message["data"] for message in pending) == [1, 2]
    completed = api.read("/api/v1/messages", queue=queue, status="completed")["messages"]
    assert payloads_of(completed) == [3]


def test_each_state_of_messages_is_found_over_several_groups(api: Api, queue: str) -> None:
    """Expected: a page filtered by state has the same messages as the whole list."""
    for number in range(12):
        api.push(queue, number, partition=f"p{number % 3}")
    for group in ("g", "h"):
        for _ in range(2):
            api.complete(api.take(queue, "p0", consumerGroup=group), group)
    (first, *_) = api.take(queue, "p1", consumerGroup="g")
    api.ack(first, "dlq", consumerGroup="g", error="broken")
    api.take(queue, "p1", consumerGroup="g")
    (failed, *_) = api.take(queue, "p2", consumerGroup="h")
    api.ack(failed, "failed", consumerGroup="h", error="not yet")
    everything = api.read("/api/v1/messages", queue=queue)["messages"]
    for status in ("pending", "processing", "completed", "dead_letter"):
        expected = [message["data"] for message in everything if message["status"] == status]
        assert expected, status
        for chosen in ({"queue": queue}, {"queue": queue, "from": "2020-01-01T00:00:00Z"}):
            found = api.read("/api/v1/messages", status=status, **chosen)
            assert (payloads_of(found["messages"]), found["complete"]) == (expected, True), status
        later = api.read("/api/v1/messages", status=status, queue=queue, limit=1, offset=1)
        assert payloads_of(later["messages"]) == expected[1:2]
        in_p1 = [
            each["data"] for each in everything if each["status"] == status and each["partition"] == "p1"
        ]
        found = api.read("/api/v1/messages", status=status, queue=queue, partition="p1")
        assert payloads_of(found["messages"]) == in_p1


def test_a_rare_state_among_many_messages_is_incomplete(api: Api, queue: str) -> None:
    api.push(queue, "oldest", partition="first")
    api.complete(api.take(queue, "first", consumerGroup="g"), "g")
    for _ in range(6):
        api.push(queue, *range(1000))
    found = api.read("/api/v1/messages", queue=queue, status="completed")
    assert (found["messages"], found["complete"]) == ([], False)
    found = api.read("/api/v1/messages", queue=queue, status="completed", partition="first")
    assert (payloads_of(found["messages"]), found["complete"]) == (["oldest"], True)
    assert api.read("/api/v1/messages", queue=queue)["complete"] is True


def test_messages_are_browsed_by_namespace_and_task(api: Api, queue: str) -> None:
    api.configure(queue, namespace=f"ns-{queue}", task=f"task-{queue}")
    api.push(queue, 1)
    assert payloads_of(api.read("/api/v1/messages", ns=f"ns-{queue}")["messages"]) == [1]
    assert payloads_of(api.read("/api/v1/messages", task=f"task-{queue}")["messages"]) == [1]
    assert api.read("/api/v1/messages", ns=f"ns-{queue}", task="other")["messages"] == []


def test_messages_are_paged(api: Api, queue: str) -> None:
    api.push(queue, *range(5))
    pages = [
        api.read("/api/v1/messages", queue=queue, limit=2, offset=offset)["messages"] for offset in (0, 2, 4)
    ]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(message["data"] for page in pages for message in page) == [0, 1, 2, 3, 4]
