"""`queenspark groups` and `queenspark seek`."""

import json

import pytest

from tests.command import Command
from tests.wire.deadline import eventually


@pytest.fixture
def group(queue: str) -> str:
    """A group name that no other test uses."""
    return f"g-{queue}"


def data(queenspark: Command, queue: str, group: str) -> list[object]:
    result = queenspark("pop", queue, "--group", group, "--batch", "100", "--json")
    return [message["data"] for message in result.json_lines()]


def test_groups_are_listed_with_their_lag(queenspark: Command, queue: str, group: str) -> None:
    queenspark("push", queue, stdin=b"1\n2\n3\n")
    queenspark("pop", queue, "--group", group)
    (line,) = [
        line for line in queenspark("groups", "list", "--search", group).out.splitlines() if group in line
    ]
    assert queue in line
    assert "2" in line.split()
    assert group in queenspark("groups", "list", "--search", group, "--json").out


def test_only_groups_that_are_behind_are_listed_on_demand(
    queenspark: Command, queue: str, group: str
) -> None:
    queenspark("push", queue, stdin=b"1\n2\n")
    queenspark("pop", queue, "--group", group)
    own = ("groups", "list", "--search", group, "--json")
    eventually(lambda: group in queenspark(*own, "--behind", "0").out, within=30)
    assert group not in queenspark(*own, "--behind", "3600").out


def test_a_group_is_shown(queenspark: Command, queue: str, group: str) -> None:
    queenspark("push", queue, "1")
    queenspark("pop", queue, "--group", group)
    assert queue in queenspark("groups", "show", group).out
    assert json.loads(queenspark("groups", "show", group, "--json").out)


def test_an_unknown_group_is_refused(queenspark: Command, group: str) -> None:
    assert queenspark("groups", "show", group).code == 1


@pytest.mark.parametrize("only_queue", [True, False])
def test_a_deleted_group_starts_over(queenspark: Command, queue: str, group: str, only_queue: bool) -> None:
    queenspark("push", queue, "1")
    assert data(queenspark, queue, group) == [1]
    arguments = ["--queue", queue] if only_queue else []
    assert queenspark("groups", "delete", group).code == 2
    assert queenspark("groups", "delete", group, "--yes", *arguments).code == 0
    assert data(queenspark, queue, group) == [1]


def test_seek_to_the_end_skips_and_to_the_beginning_repeats(
    queenspark: Command, queue: str, group: str
) -> None:
    queenspark("push", queue, stdin=b"1\n2\n")
    assert queenspark("seek", queue, group, "--to-end").code == 0
    assert data(queenspark, queue, group) == []
    assert queenspark("seek", queue, group, "--to-beginning").code == 0
    assert data(queenspark, queue, group) == [1, 2]


def test_seek_to_a_time_repeats_from_there(queenspark: Command, queue: str, group: str) -> None:
    queenspark("push", queue, stdin=b"1\n")
    queenspark("push", queue, stdin=b"2\n")
    messages = queenspark("pop", queue, "--group", group, "--batch", "9", "--json").json_lines()
    assert queenspark("seek", queue, group, "--to", messages[1]["createdAt"]).code == 0
    assert data(queenspark, queue, group) == [2]


def test_seek_in_one_partition_leaves_the_others(queenspark: Command, queue: str, group: str) -> None:
    for name in ("a", "b"):
        queenspark("push", queue, f'"{name}"', "--partition", name)
    queenspark("seek", queue, group, "--to-end")
    result = queenspark("seek", queue, group, "--to-beginning", "--partition", "b", "--json")
    assert result.json()
    assert data(queenspark, queue, group) == ["b"]


@pytest.mark.parametrize(
    "place", [[], ["--to-end", "--to-beginning"], ["--to", "yesterday"], ["--to-end", "--to", "2030-01-01"]]
)
def test_a_seek_to_nowhere_is_a_usage_error(
    queenspark: Command, queue: str, group: str, place: list[str]
) -> None:
    assert queenspark("seek", queue, group, *place).code == 2


def test_a_seek_in_an_unknown_queue_is_refused(queenspark: Command, queue: str, group: str) -> None:
    assert queenspark("seek", queue, group, "--to-end").code == 1
