"""Batches of a topic: with any batch size, the merged log is read completely and in one order."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from queenspark.connectors.kafka.cut import Cut, cut

Timestamps = list[list[int]]


class Topic:
    """Partitions as lists of timestamps."""

    def __init__(self, partitions: Timestamps) -> None:
        self.partitions = partitions
        self.asked = 0

    @property
    def ends(self) -> list[int]:
        return [len(each) for each in self.partitions]

    def at(self, time: int) -> Sequence[int]:
        self.asked += 1
        return [
            next((offset for offset, stamp in enumerate(each) if stamp >= time), len(each))
            for each in self.partitions
        ]


def batches(topic: Topic, rows: int, now: int, step: int = 0) -> list[tuple[tuple[int, ...], Cut]]:
    """The batches until everything was read, each with its start."""
    offsets, time = (0,) * len(topic.partitions), 0
    found = []
    while True:
        each = cut(topic, offsets, topic.ends, time, now, rows, step)
        found.append((offsets, each))
        assert each.time >= time
        if not each.has_more:
            return found
        assert each.offsets != offsets, "a batch without records"
        offsets, time = each.offsets, each.time


def places(topic: Topic, rows: int, now: int) -> list[tuple[int, int, int]]:
    """Time, partition and offset of each record, batch by batch, as a reader gives them."""
    found: list[tuple[int, int, int]] = []
    floor = 0
    for starts, each in batches(topic, rows, now):
        batch = [
            (min(max(time, floor), each.time), partition, offset)
            for partition, stamps in enumerate(topic.partitions)
            for offset, time in enumerate(accumulate(stamps, max))
            if starts[partition] <= offset < each.offsets[partition]
        ]
        assert len(batch) <= rows
        found += sorted(batch)
        floor = each.time
    return found


stamps = st.lists(st.lists(st.integers(0, 60), max_size=12), min_size=1, max_size=4)


@given(stamps, st.integers(1, 20))
def test_a_backlog_has_one_order_for_any_batch_size(partitions: Timestamps, rows: int) -> None:
    whole = places(Topic(partitions), 1000, now=100)
    assert places(Topic(partitions), rows, now=100) == whole
    assert [(time, *rest) for time, *rest in whole] == sorted(whole)
    assert len(whole) == sum(map(len, partitions))


@given(stamps, st.integers(1, 20), st.integers(0, 60))
def test_records_from_the_future_delay_no_others(partitions: Timestamps, rows: int, now: int) -> None:
    found = places(Topic(partitions), rows, now)
    assert {each[1:] for each in found} == {each[1:] for each in places(Topic(partitions), 1000, now)}
    assert len(found) == sum(map(len, partitions))
    for partition in range(len(partitions)):
        mine = [(time, offset) for time, number, offset in found if number == partition]
        assert mine == sorted(mine)
    known = [each for each in found if each[0] < now]
    assert known == sorted(known)


def test_partitions_are_read_up_to_the_same_time() -> None:
    slow, quick = list(range(0, 1000, 10)), list(range(1000))
    (_, first), *_ = batches(Topic([slow, quick]), 110, now=5000)
    assert first.offsets[0] == bisect_left(slow, first.time)
    assert first.offsets[1] == bisect_left(quick, first.time)


def test_an_empty_partition_delays_no_others() -> None:
    (_, only), *more = batches(Topic([[], [1, 2, 3]]), 10, now=5000)
    assert (only, more) == (Cut((0, 3), 5000, False), [])


def test_old_records_that_came_after_their_time_are_read_in_turns() -> None:
    """For example when a mirror copies years of history into a topic that was read to its end."""
    topic = Topic([[1] * 50, [2] * 50])
    found = cut(topic, (0, 0), topic.ends, 1000, 1001, 10)
    assert found == Cut((5, 5), 1000, True)


def test_a_good_guess_needs_few_questions() -> None:
    topic = Topic([list(range(0, 1_000_000, 100))] * 2)
    cut(topic, (0, 0), topic.ends, 0, 10**9, 1000)
    without, topic.asked = topic.asked, 0
    cut(topic, (0, 0), topic.ends, 0, 10**9, 1000, step=40_000)
    assert topic.asked <= 3 < without
