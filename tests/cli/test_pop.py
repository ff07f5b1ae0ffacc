"""`queenspark pop`."""

from tests.command import Command


def test_popped_messages_are_printed_and_acked(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, '{"customer": "Ada [red]"}', "--transaction-id", "t-1")
    result = queenspark("pop", queue)
    assert result.code == 0
    assert "t-1" in result.out
    assert '{"customer":"Ada [red]"}' in result.out
    assert queenspark("pop", queue).code == 3


def test_an_empty_queue_is_exit_code_3(queenspark: Command, queue: str) -> None:
    result = queenspark("pop", queue, "--json")
    assert (result.code, result.out) == (3, "")
    assert queue in result.err


def test_a_queue_that_does_not_exist_is_named_with_the_nearest_one(queenspark: Command, queue: str) -> None:
    missing = queenspark("pop", queue)
    assert missing.code == 3
    assert f"The queue {queue} does not exist" in missing.err
    queenspark("push", queue, "1")
    typo = queenspark("pop", f"{queue}x")
    assert typo.code == 3
    assert f"The queue {queue}x does not exist; did you mean {queue}?" in typo.err
    assert queenspark("pop", queue).code == 0
    assert f"No message available in {queue};" in queenspark("pop", queue).err


def test_a_batch_comes_in_order(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, stdin=b"1\n2\n3\n")
    assert [
        message["data"] for message in queenspark("pop", queue, "--batch", "2", "--json").json_lines()
    ] == [1, 2]
    assert [
        message["data"] for message in queenspark("pop", queue, "--batch", "2", "--json").json_lines()
    ] == [3]


def test_a_batch_comes_from_several_partitions(queenspark: Command, queue: str) -> None:
    for name in ("a", "b", "c"):
        queenspark("push", queue, f'"{name}"', "--partition", name)
    messages = queenspark("pop", queue, "--batch", "9", "--json").json_lines()
    assert sorted(message["data"] for message in messages) == ["a", "b", "c"]
    assert queenspark("pop", queue).code == 3


def test_without_ack_the_message_stays_leased(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1")
    result = queenspark("pop", queue, "--no-ack")
    assert result.code == 0
    assert "Not acknowledged; lease " in result.err
    assert queenspark("pop", queue).code == 3


def test_groups_read_independently(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1")
    for group in ("one", "two"):
        assert queenspark("pop", queue, "--group", group).code == 0
        assert queenspark("pop", queue, "--group", group).code == 3


def test_a_partition_can_be_chosen(queenspark: Command, queue: str) -> None:
    for name in ("a", "b"):
        queenspark("push", queue, f'"{name}"', "--partition", name)
    (message,) = queenspark("pop", queue, "--partition", "b", "--batch", "9", "--json").json_lines()
    assert message["data"] == "b"


def test_a_wait_times_out(queenspark: Command, queue: str) -> None:
    assert queenspark("pop", queue, "--wait", "0.2").code == 3


def test_headers_are_shown_when_a_message_has_some(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1", "--header", "tenant=north", "--header", "n=2")
    assert "tenant=north n=2" in queenspark("pop", queue).out
    queenspark("push", queue, "1")
    assert "headers" not in queenspark("pop", queue).out
