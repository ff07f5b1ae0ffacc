"""Streams that compute: each kind of window by a payload key, with aggregates and exactly its messages."""

import random
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from queenspark.sql.running.records import RecordStage, Taken
from tests.conftest import StartBroker
from tests.streams.computing import MINUTE_MS, Computing, at, by_key

KEY: dict[str, Any] = {"key": ["data.user"], "where": "data.n > 0", "event_time": "data.at"}
SUM = {"total": "sum(data.n)"}


@pytest.fixture(scope="module")
def running(module_broker: StartBroker) -> Iterator[Computing]:
    """A broker and a pipeline for all tests of the file."""
    key = bytes(range(32))
    broker = module_broker(encryption_key=b64encode(key).decode())
    system = Computing(broker.url, broker.database_url, key)
    yield system
    system.close()


@pytest.fixture
def computing(running: Computing) -> Iterator[Computing]:
    """Names of the test's own."""
    running.begin()
    yield running
    running.forget()


def rec(second: float, user: str | None, n: float) -> dict[str, Any]:
    return at(second, user=user, n=n)


def test_tumbling_totals_by_a_payload_key(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "bob", 5), rec(2, "ann", -7), rec(3, "ann", 2), partition="p1")
    computing.push(rec(4, "bob", 6), rec(59, "ann", 4), partition="p2")
    computing.define(**KEY, aggregates={**SUM, "largest": "max(data.n)"}, window_duration_ms=MINUTE_MS)
    computing.push(rec(60, "ann", 100), rec(61, "bob", 100))
    windows = computing.windows()
    assert by_key(windows) == {
        "ann": [({"total": 7, "largest": 4}, [1, 2, 4])],
        "bob": [({"total": 11, "largest": 6}, [5, 6])],
    }
    ann = next(window for window in windows if window["key"] == "ann")
    assert (ann["start"], ann["end"]) == ("2026-01-31T12:00:00.000Z", "2026-01-31T12:01:00.000Z")
    assert {message["partition"] for message in ann["messages"]} == {"p1", "p2"}


def test_sliding_windows(computing: Computing) -> None:
    computing.push(rec(30, "ann", 1), rec(90, "ann", 2), rec(91, "ann", 0), rec(100, "bob", 3))
    computing.define(
        **KEY,
        aggregates=SUM,
        window_type="sliding",
        window_duration_ms=2 * MINUTE_MS,
        window_slide_ms=MINUTE_MS,
    )
    computing.push(rec(400, "ann", 9), rec(400, "bob", 9))
    assert by_key(computing.windows()) == {
        "ann": [({"total": 1}, [1]), ({"total": 3}, [1, 2]), ({"total": 2}, [2])],
        "bob": [({"total": 3}, [3]), ({"total": 3}, [3])],
    }


def test_sessions_exclude_dropped_records(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(5, "bob", 50), rec(9, "ann", 2))
    computing.define(**KEY, aggregates=SUM, window_type="session", window_gap_ms=10_000, late="drop")
    # 40 closes the session of 0 and 9; 8 is late then, and so is 39.5 after 60.
    computing.push(rec(40, "ann", 4), rec(8, "ann", 1000), rec(45, "ann", 8), rec(6, "bob", 60))
    computing.push(rec(60, "ann", 16), rec(39.5, "ann", 2000), rec(65, "ann", 32), rec(90, "bob", 9))
    computing.push(rec(90, "ann", 9))
    assert by_key(computing.windows()) == {
        "ann": [({"total": 3}, [1, 2]), ({"total": 12}, [4, 8]), ({"total": 48}, [16, 32])],
        "bob": [({"total": 110}, [50, 60])],
    }
    assert computing.shown()["progress"]["dropped"] == 2


def test_count_windows(computing: Computing) -> None:
    del_time = {name: value for name, value in KEY.items() if name != "event_time"}
    computing.push(rec(0, "ann", 1), rec(0, "bob", 5), rec(0, "ann", -1), rec(0, "ann", 2), rec(0, "ann", 3))
    computing.define(
        **del_time, aggregates=SUM, window_type="count", window_size_count=2, window_slide_count=1
    )
    computing.push(rec(0, "ann", 4), rec(0, "bob", 6))
    assert by_key(computing.windows()) == {
        "ann": [({"total": 3}, [1, 2]), ({"total": 5}, [2, 3]), ({"total": 7}, [3, 4])],
        "bob": [({"total": 11}, [5, 6])],
    }


def test_rows_windows_come_with_every_record(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "bob", 5), rec(2, "ann", -1), rec(3, "ann", 2), rec(4, "ann", 4))
    computing.define(**KEY, aggregates=SUM, window_type="rows", window_size_count=2, having="total <> 1")
    windows = computing.windows()
    assert by_key(windows) == {
        "ann": [({"total": 3}, [1, 2]), ({"total": 6}, [2, 4])],
        "bob": [({"total": 5}, [5])],
    }
    assert len({window["id"] for window in windows}) == 3
    assert windows[0]["start"].startswith("2026-01-31T12:00:0")


def test_changes_come_with_every_record(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "bob", 5), rec(2, "ann", 2))
    computing.define(**KEY, aggregates=SUM, emit="changes", window_duration_ms=MINUTE_MS)
    first = computing.windows()
    computing.push(rec(3, "ann", 3), rec(61, "ann", 7), rec(4, "ann", 4))
    windows = first + computing.windows()
    assert by_key(windows) == {
        "ann": [
            ({"total": 1}, [1]), ({"total": 3}, [1, 2]), ({"total": 6}, [1, 2, 3]), ({"total": 7}, [7]),
            ({"total": 10}, [1, 2, 3, 4]),
        ],
        "bob": [({"total": 5}, [5])],
    }  # fmt: skip
    ann = [window for window in windows if window["key"] == "ann"]
    assert [window["revision"] for window in ann] == [1, 2, 3, 1, 4]
    assert len({window["id"] for window in ann}) == 2


def test_windows_without_messages_still_have_their_aggregates(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(61, "ann", 2))
    computing.define(**KEY, aggregates=SUM, window_duration_ms=MINUTE_MS)
    (window,) = computing.windows(messages=False)
    assert (window["aggregates"], window["count"]) == ({"total": 1}, 1)
    assert "messages" not in window


def test_a_late_record_makes_the_next_revision(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(61, "ann", 2), rec(1, "bob", 50))
    computing.define(**KEY, aggregates=SUM, window_duration_ms=MINUTE_MS)
    first = computing.windows()
    computing.push(rec(5, "ann", 3), rec(5, "ann", -3))
    second = computing.windows()
    assert [by_key(windows) for windows in (first, second)] == [
        {"ann": [({"total": 1}, [1])]}, {"ann": [({"total": 4}, [1, 3])]},
    ]  # fmt: skip
    assert first[0]["id"] == second[0]["id"]
    assert second[0]["revision"] == 2


def test_a_condition_on_the_result(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "bob", 50), rec(61, "ann", 2), rec(62, "bob", 2))
    computing.define(**KEY, aggregates=SUM, having="total > 10", window_duration_ms=MINUTE_MS)
    assert by_key(computing.windows()) == {"bob": [({"total": 50}, [50])]}


def test_a_key_and_a_condition_without_aggregates(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, None, 50), rec(3, "ann", -2), rec(61, "ann", 2), rec(62, None, 2))
    computing.define(**KEY, window_duration_ms=MINUTE_MS)
    assert by_key(computing.windows()) == {"ann": [(None, [1])], "[null]": [(None, [50])]}


def test_keys_of_several_parts(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "ann", 2), rec(2, "ann", 3), rec(3, "ann", 4))
    computing.define(
        key=["data.user", "data.n % 2"], window_type="count", window_size_count=2, aggregates=SUM
    )
    assert by_key(computing.windows()) == {
        '["ann",1]': [({"total": 4}, [1, 3])], '["ann",0]': [({"total": 6}, [2, 4])],
    }  # fmt: skip


def test_very_long_keys(computing: Computing) -> None:
    names = ["x" * 5000, "x" * 5000 + "y"]
    computing.push(*[rec(n, name, n + 1) for n, name in enumerate(names * 2)])
    computing.define(key=["data.user"], window_type="count", window_size_count=2, aggregates=SUM)
    found = by_key(computing.windows())
    assert sorted(found.values(), key=str) == [[({"total": 4}, [1, 3])], [({"total": 6}, [2, 4])]]
    assert all(len(key) <= 255 for key in found)


@pytest.mark.parametrize("partition", ["p", "[odd", '["DE",5]'])
def test_without_a_key_the_partition_is_the_key(computing: Computing, partition: str) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "bob", 2), rec(2, "ann", -1), partition=partition)
    computing.push(rec(1, "cid", 7), partition="other")
    computing.define(
        partitioned=True, where="data.n > 0", event_time="data.at", window_type="session", window_gap_ms=1500,
        aggregates={**SUM, "whose": "_partition"}, late="drop",
    )  # fmt: skip
    computing.push(
        rec(30, "ann", 1), rec(0.5, "ann", 100), rec(31, "ann", 2), rec(60, "x", 9), partition=partition
    )
    windows = [window for window in computing.windows() if window["key"] == partition]
    assert by_key(windows) == {
        partition: [({"total": 3, "whose": partition}, [1, 2]), ({"total": 3, "whose": partition}, [1, 2])]
    }


def test_without_key_and_partition_there_is_one_key(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), partition="p1")
    computing.push(rec(1, "bob", 2), rec(61, "bob", 3), partition="p2")
    computing.define(event_time="data.at", aggregates=SUM, window_duration_ms=MINUTE_MS)
    assert by_key(computing.windows()) == {"__GLOBAL__": [({"total": 3}, [1, 2])]}


def test_windows_by_the_time_of_the_push(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(0, "bob", 5), rec(0, "ann", 2))
    computing.define(key=["data.user"], aggregates=SUM, window_duration_ms=50)
    found: dict[str, Any] = {}
    while set(found) != {"ann", "bob"}:
        found |= by_key(computing.windows())
    assert found == {"ann": [({"total": 3}, [1, 2])], "bob": [({"total": 5}, [5])]}


def test_empty_windows_have_aggregates_too(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(121, "ann", 2))
    computing.define(
        **KEY, aggregates={**SUM, "records": "count(*)"}, window_duration_ms=MINUTE_MS, emit_empty=True
    )
    assert by_key(computing.windows()) == {
        "ann": [({"total": 1, "records": 1}, [1]), ({"total": None, "records": 0}, [])]
    }


def test_several_queues_are_one_relation(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "bob", 2))
    computing.push(rec(2, "ann", 1.5), queue=computing.other)
    computing.define(
        **KEY,
        source_queue_names=[computing.queue, computing.other],
        aggregates=SUM,
        window_duration_ms=MINUTE_MS,
    )
    computing.push(rec(61, "ann", 3))
    assert by_key(computing.windows()) == {"ann": [({"total": 2.5}, [1, 1.5])]}


def test_encrypted_queues(computing: Computing) -> None:
    computing.api.configure(computing.queue, encryptionEnabled=True)
    computing.push(rec(0, "ann", 1), rec(1, "bob", 2), rec(2, "ann", 3), rec(61, "ann", 9))
    computing.define(**KEY, aggregates=SUM, window_duration_ms=MINUTE_MS)
    assert by_key(computing.windows()) == {"ann": [({"total": 4}, [1, 3])]}


def test_pages_of_a_window(computing: Computing) -> None:
    computing.push(*[rec(0, "ann" if n % 3 else "bob", n + 1) for n in range(30)])
    computing.define(**KEY, aggregates=SUM, window_duration_ms=MINUTE_MS)
    computing.push(rec(61, "bob", 1))
    computing.drain()
    window = computing.try_poll(maxMessages=4).json()["window"]
    pages = [window["messages"]]
    cursor = window["nextCursor"]
    while cursor is not None:
        response = computing.api.read(
            f"/api/v1/stream/window/{window['leaseId']}/messages", cursor=cursor, maxMessages=4
        )
        pages.append(response["messages"])
        cursor = response["nextCursor"]
    assert [[message["data"]["n"] for message in page] for page in pages] == [
        [1, 4, 7, 10], [13, 16, 19, 22], [25, 28],
    ]  # fmt: skip


def test_unacked_windows_show_their_aggregates(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(61, "ann", 2))
    computing.define(**KEY, aggregates=SUM, window_duration_ms=MINUTE_MS)
    computing.drain()
    (window,) = computing.shown("windows")["windows"]
    assert (window["key"], window["aggregates"]) == ("ann", {"total": 1})


def test_records_that_cannot_be_computed_are_dead(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), {**rec(1, "ann", 0), "n": "many"}, rec(2, "ann", 2), rec(61, "ann", 2))
    computing.define(
        key=["data.user"], where="data.m IS NULL", event_time="data.at", window_duration_ms=MINUTE_MS,
        aggregates={"total": "sum(cast(data.n as bigint))"},
    )  # fmt: skip
    assert by_key(computing.windows()) == {"ann": [({"total": 3}, [1, 2])]}
    (dead,) = computing.shown("dead")["dead"]
    assert "many" in dead["reason"]


def test_a_stream_that_fails_says_why_and_goes_on_when_it_is_defined_again(
    computing: Computing, monkeypatch: pytest.MonkeyPatch
) -> None:
    computing.push(rec(0, "ann", 1))
    given = {**KEY, "aggregates": SUM, "window_duration_ms": MINUTE_MS}
    computing.define(**given)

    def failing(self: RecordStage, messages: pl.DataFrame) -> Taken:
        raise RuntimeError("no such luck")

    with monkeypatch.context() as patch:
        patch.setattr(RecordStage, "run", failing)
        computing.drain()
    assert computing.shown()["lastError"] == "RuntimeError: no such luck"
    assert computing.define(**given)["version"] == 1
    assert computing.shown()["lastError"] is None
    computing.push(rec(1, "ann", 2), rec(61, "ann", 4))
    assert by_key(computing.windows()) == {"ann": [({"total": 3}, [1, 2])]}


def test_a_definition_shows_its_expressions(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1))
    assert computing.define(**KEY, aggregates=SUM, having="total > 1")["version"] == 1
    shown = computing.shown()
    assert (shown["key"], shown["where"]) == (["data.user"], "data.n > 0")
    assert (shown["aggregates"], shown["having"], shown["emit"]) == (
        {"total": "SUM(data.n)"}, "total > 1", "final",
    )  # fmt: skip


def test_the_same_definition_changes_nothing(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "ann", 2))
    computing.define(**KEY, aggregates=SUM, window_duration_ms=MINUTE_MS)
    computing.drain()
    # Types have changed, spaces and case too: it is the same all the same.
    computing.push(rec(2, "ann", 2), rec(2, "ann", 2.5))
    again = {**KEY, "where": "data.n>0", "aggregates": {"total": "SUM( data.n )"}}
    assert computing.define(**again, window_duration_ms=MINUTE_MS)["version"] == 1
    assert (
        computing.define(**again, window_duration_ms=MINUTE_MS, window_grace_period_ms=1000)["version"] == 1
    )
    computing.push(rec(60.5, "ann", 8))
    assert computing.windows() == []
    computing.push(rec(61.5, "ann", 8))
    assert by_key(computing.windows()) == {"ann": [({"total": 5}, [1, 2, 2])]}
    (dead,) = computing.shown("dead")["dead"]
    assert dead["reason"] == "n is 2.5, not a BIGINT; it would fit DOUBLE"


@pytest.mark.parametrize(
    "change",
    [{"key": ["data.n"]}, {"where": "data.n > 1"}, {"aggregates": {"total": "max(data.n)"}},
     {"having": "total > 3"}, {"emit": "changes"}, {"key": []}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_another_computation_is_a_new_version(computing: Computing, change: dict[str, Any]) -> None:
    computing.push(rec(0, "ann", 1))
    given = {**KEY, "aggregates": SUM}
    computing.define(**given)
    assert computing.define(**{**given, **change})["version"] == 2


def test_a_new_version_by_position_loses_no_open_window(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "ann", 2))
    computing.define(**KEY, aggregates=SUM, window_duration_ms=MINUTE_MS)
    computing.drain()
    count = {"window_type": "count", "window_size_count": 2}
    assert (
        computing.define(**KEY, aggregates={"sum": "sum(data.n)"}, **count, idle_timeout_ms=1)["version"] == 2
    )
    computing.push(rec(61, "ann", 4), rec(62, "ann", 8))
    windows = computing.windows()
    while len(windows) < 2:  # the first version is sealed by silence
        windows += computing.windows()
    assert by_key(windows) == {"ann": [({"sum": 12}, [4, 8]), ({"total": 3}, [1, 2])]}
    assert [window["version"] for window in windows] == [2, 1]


def test_from_whole_messages_to_a_computation_and_back(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "ann", 2))
    plain: dict[str, Any] = {"window_type": "count", "window_size_count": 2}
    computing.define(**plain)
    first = computing.windows()
    assert computing.define(**plain, aggregates=SUM)["version"] == 2
    computing.push(rec(2, "ann", 3), rec(3, "ann", 4))
    second = computing.windows()
    assert computing.define(**plain)["version"] == 3
    computing.push(rec(4, "ann", 5), rec(5, "ann", 6))
    assert by_key(first + second + computing.windows()) == {
        "__GLOBAL__": [(None, [1, 2]), ({"total": 7}, [3, 4]), (None, [5, 6])]
    }


KINDS: dict[str, dict[str, Any]] = {
    "tumbling": {"window_duration_ms": 10_000},
    "sliding": {"window_type": "sliding", "window_duration_ms": 10_000, "window_slide_ms": 4_000},
    "session": {"window_type": "session", "window_gap_ms": 2_500},
    "count": {"window_type": "count", "window_size_count": 5, "window_slide_count": 2},
    "rows": {"window_type": "rows", "window_size_count": 4},
    "changes": {"window_duration_ms": 10_000, "emit": "changes"},
    "count changes": {"window_type": "count", "window_size_count": 5, "emit": "changes"},
}


@pytest.mark.parametrize("late", ["process", "drop"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_messages_of_a_window_are_those_that_it_was_computed_from(
    computing: Computing, kind: str, late: str
) -> None:
    """Disorder, several queues, partitions and batches: sums of random numbers tell which records are in."""
    chance = random.Random(f"{kind} {late}")
    queues = [computing.queue, computing.other]
    for queue in queues:
        computing.api.configure(queue)
    computing.define(
        **KINDS[kind], source_queue_names=queues, late=late, event_time="data.at",
        key=["lower(data.user)", "cast(data.n as bigint) % 2 = 0"], where="data.kind <> 'look'",
        aggregates={"total": "sum(cast(data.n as bigint))", "records": "count(*)"},
    )  # fmt: skip
    second, windows = 0.0, []
    for _ in range(4):
        for _ in range(8):
            second += chance.random()
            payloads = [
                {
                    **rec(
                        second - chance.choice([0, 0, 0, 3, 12]),
                        chance.choice("aAbB"),
                        chance.getrandbits(45),
                    ),
                    "kind": chance.choice(["buy", "look", "buy", None]),
                    **({"at": "never"} if chance.random() < 0.05 else {}),
                }
                for _ in range(chance.randrange(1, 6))
            ]
            computing.push(*payloads, queue=chance.choice(queues), partition=chance.choice("xyz"))
        windows += computing.windows()
    assert len(windows) > 5
    for window in windows:
        numbers = [message["data"]["n"] for message in window["messages"]]
        assert window["aggregates"] == {"total": sum(numbers), "records": len(numbers)}
        assert window["count"] == len(numbers)
        assert {message["data"]["kind"] for message in window["messages"]} == {"buy"}
        (user,) = {message["data"]["user"].lower() for message in window["messages"]}
        (even,) = {number % 2 == 0 for number in numbers}
        assert window["key"] == f'["{user}",{str(even).lower()}]'


LIKE_ANOTHER = ("sliding", "rows", "count changes")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind in LIKE_ANOTHER)) for kind in KINDS]
)
def test_a_pipeline_that_loses_its_checkpoint_gives_no_window_twice(computing: Computing, kind: str) -> None:
    numbers = iter(range(1, 1000))

    def push() -> None:
        for _ in range(6):
            computing.push(*[rec(4 * n, "ab"[n % 2], n) for n in [next(numbers) for _ in range(5)]])

    push()
    computing.define(**KINDS[kind], **KEY, aggregates=SUM)
    first = computing.windows()
    computing.pipeline.begin_again()
    assert computing.windows() == []
    push()
    windows = first + computing.windows()
    ids = [(window["id"], window["revision"]) for window in windows]
    assert len(ids) == len(set(ids)) > 5
    for window in windows:
        found = [message["data"]["n"] for message in window["messages"]]
        assert window["aggregates"] == {"total": sum(found)}
    computing.begin()
    numbers = iter(range(1, 1000))
    push()
    computing.define(**KINDS[kind], **KEY, aggregates=SUM)
    push()
    assert by_key(computing.windows()) == by_key(windows)


REFUSED = [
    ({"where": "data.n >"}, "where: expected an expression"),
    ({"where": "sum(data.n) > 1"}, "where: the aggregate SUM is not allowed in WHERE; use HAVING"),
    ({"where": "data.n"}, "where: "),
    ({"aggregates": {"total": "data.n"}}, "aggregates.total: data.n is neither in GROUP BY"),
    ({"aggregates": {"a": "count(*)", "total": "sum(data.user)"}}, "aggregates.total: "),
    ({"aggregates": {"total": "summ(data.n)"}}, "aggregates.total: "),
    ({"aggregates": {"total": "sum(amount)"}}, "aggregates.total: amount is not in the newest messages"),
    ({"aggregates": {"total": "sum(data.amount)"}}, "CAST(data.amount AS DOUBLE)"),
    ({"where": "data.amount > 5"}, "CAST(data.amount AS DOUBLE)"),
    ({"aggregates": {"_a": "count(*)"}}, "aggregates: the name '_a'"),
    ({"aggregates": {"a": "count(*)", "A": "count(*)"}}, "aggregates.A: two columns are named A"),
    ({"aggregates": {"wait": "interval '5' minute"}}, "aggregates.wait: an INTERVAL cannot be a column"),
    ({"having": "many > 5"}, "having: many is neither in GROUP BY nor in an aggregate"),
    ({"key": ["data.user", "count(*)"]}, "key[1]: the aggregate COUNT is not allowed in GROUP BY"),
    ({"key": ["data.user"], "partitioned": True}, "partitioned and key cannot be combined"),
    (
        {"window_type": "session", "window_gap_ms": 5, "emit": "changes"},
        "emit: EMIT CHANGES is not supported for SESSION windows",
    ),
    ({"window_type": "rows", "window_size_count": 5, "emit": "final"}, "emit must be changes"),
    ({"window_type": "rows"}, "window_size_count is required for rows windows"),
    ({"window_type": "rows", "window_size_count": 10**6}, "window_size_count"),
    ({"where": "data.n > 0; drop stream x"}, "where: "),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "reason"), REFUSED, ids=lambda value: str(value)[:50])
def test_wrong_expressions_are_refused_with_the_name_of_the_field(
    computing: Computing, fields: dict[str, Any], reason: str
) -> None:
    computing.push({**rec(0, "ann", 1), "deep": {"er": 1}})
    assert reason in computing.refused(**fields)


def test_queues_that_do_not_exist_are_refused(computing: Computing) -> None:
    assert computing.queue in computing.refused(**KEY)


def test_an_empty_queue_needs_types_only_where_they_matter(computing: Computing) -> None:
    computing.api.configure(computing.queue)
    computing.define(
        key=["data.user"], where="data.kind = 'buy' AND cast(data.n as double) > 0", window_type="count",
        window_size_count=2, aggregates={"total": "sum(cast(data.n as double))"},
    )  # fmt: skip
    computing.push(*[{**rec(0, "ann", n), "kind": "buy" if n > 1 else "look"} for n in (1, 2, 2.5)])
    assert by_key(computing.windows()) == {"ann": [({"total": 4.5}, [2, 2.5])]}


def test_payload_is_another_name_of_data_in_definitions(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(1, "bob", -5), rec(2, "ann", 2))
    computing.define(
        key=["payload.user"],
        where="payload.n > 0",
        event_time="payload.at",
        aggregates={"total": "sum(payload.n)"},
        window_duration_ms=MINUTE_MS,
    )
    computing.push(rec(60, "ann", 100))
    assert by_key(computing.windows()) == {"ann": [({"total": 3}, [1, 2])]}


def test_payload_is_another_name_of_data_in_the_event_time_alone(computing: Computing) -> None:
    computing.push(rec(0, "ann", 1), rec(59, "ann", 2))
    computing.define(event_time="payload.at", window_duration_ms=MINUTE_MS)
    computing.push(rec(60, "ann", 3))
    assert [window["start"] for window in computing.windows()] == ["2026-01-31T12:00:00.000Z"]
    assert computing.shown()["eventTime"] == "data.at"


UNORDERED = {"ordered": False, "event_time": "data.at", "window_duration_ms": MINUTE_MS}


def minutes(computing: Computing, *numbers: int, partition: str = "p") -> None:
    """A record in each of these minutes."""
    computing.push(*(rec(60 * number, "ann", number) for number in numbers), partition=partition)


@pytest.mark.parametrize("partitioned", [False, True])
def test_windows_of_one_key_go_to_several_workers_when_order_does_not_matter(
    computing: Computing, partitioned: bool
) -> None:
    minutes(computing, *range(1, 41))
    computing.define(**UNORDERED, partitioned=partitioned)
    computing.drain()
    held = computing.try_poll(maxWindows=100).json()["windows"]
    assert {window["key"] for window in held} == {"p" if partitioned else "__GLOBAL__"}
    assert 8 <= len(held) <= 16
    assert len({window["leaseId"] for window in held}) == len(held)
    first, second, *rest = held
    for window in rest:
        computing.api.post("/api/v1/stream/ack", {"leaseId": window["leaseId"], "success": True})
    others = computing.windows()
    assert {first["id"], second["id"]}.isdisjoint(window["id"] for window in others)
    assert computing.api.post("/api/v1/stream/ack", {"leaseId": first["leaseId"]}).status_code == 200
    computing.api.post("/api/v1/stream/ack", {"leaseId": second["leaseId"], "success": False})
    failed = computing.shown("windows")["windows"]
    assert [window["id"] for window in failed if window["state"] == "retrying"] == [second["id"]]
    for waiting in failed:
        assert waiting["id"] not in {window["id"] for window in others}
    done = {window["id"] for window in (*rest, *others, first)}
    assert len(done) + len(failed) == 39
    (consumed,) = computing.shown("consumers")["consumers"]
    assert (consumed["streamKey"], consumed["totalWindowsConsumed"]) == (first["key"], len(done))


def test_windows_without_order_come_once_after_a_lost_checkpoint(computing: Computing) -> None:
    """Revisions of a window are told apart from it, and found again."""
    minutes(computing, *range(1, 21))
    computing.define(**UNORDERED, partitioned=True)
    assert len(computing.windows()) == 19
    minutes(computing, 18, 30)
    late = [(window["start"][11:16], window["revision"]) for window in computing.windows()]
    assert sorted(late) == [("12:18", 2), ("12:20", 1)]
    computing.pipeline.begin_again()
    assert computing.windows() == []
    assert len(computing.windows("another group")) == 21


def test_count_windows_without_order_go_on_after_a_lost_checkpoint(computing: Computing) -> None:
    minutes(computing, *range(1, 26), partition="a")
    minutes(computing, *range(1, 8), partition="b")
    counting = {"ordered": False, "window_type": "count", "window_size_count": 2, "partitioned": True}
    computing.define(**counting)
    before = computing.windows()
    assert len(before) == 15
    computing.pipeline.begin_again()
    minutes(computing, 26, 27, partition="a")
    minutes(computing, 8, partition="b")
    after = by_key(computing.windows())
    assert after == {"a": [(None, [25, 26])], "b": [(None, [7, 8])]}


def test_a_stream_that_loses_its_order_gets_a_new_version(computing: Computing) -> None:
    minutes(computing, 1, 2)
    ordered = computing.define(**{**UNORDERED, "ordered": True})
    unordered = computing.define(**UNORDERED)
    assert (ordered["version"], unordered["version"]) == (1, 2)
    assert computing.shown()["ordered"] is False
    assert computing.refused(**{**UNORDERED, "ordered": "no"}) == "ordered must be true or false"
