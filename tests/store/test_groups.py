"""Consumer groups: where they begin, seek, deletion, lag."""

from datetime import UTC, datetime, timedelta

import pytest

from queenspark.store.page import Page
from queenspark.store.store import Store
from tests.store.desk import Desk, names

pytestmark = pytest.mark.anyio


async def test_each_group_reads_everything_for_itself(desk: Desk) -> None:
    await desk.push("a", "b")
    assert await desk.popped(group="one") == ["a", "b"]
    assert await desk.popped(group="two") == ["a", "b"]


async def test_mode_new_begins_at_the_first_contact(desk: Desk) -> None:
    await desk.push("before")
    assert await desk.popped(mode="new") == []
    await desk.push("after")
    await desk.push("elsewhere", partition="made later")
    assert sorted(await desk.popped(partitions=5)) == ["after", "elsewhere"]


async def test_a_start_time_skips_older_messages(desk: Desk) -> None:
    await desk.push("old")
    desk.age(3600)
    await desk.push("young")
    start = datetime.now(UTC) - timedelta(minutes=1)
    assert await desk.popped(start=start) == ["young"]


async def test_seek_to_the_beginning_replays_everything(desk: Desk) -> None:
    await desk.push("a1", partition="a")
    await desk.push("b1", partition="b")
    assert sorted(await desk.popped(partitions=5)) == ["a1", "b1"]
    assert await desk.store.groups.seek("q", "g", "beginning")
    assert sorted(await desk.popped(partitions=5)) == ["a1", "b1"]


async def test_seek_to_the_end_skips_everything_and_misses_nothing_new(desk: Desk) -> None:
    await desk.push("a")
    assert await desk.store.groups.seek("q", "g", "end")
    assert await desk.popped() == []
    await desk.push("b")
    await desk.push("c", partition="new")
    assert sorted(await desk.popped(partitions=5)) == ["b", "c"]


async def test_seek_to_a_time_delivers_from_there(desk: Desk) -> None:
    await desk.push("old")
    desk.age(3600)
    desk.run("DELETE FROM queenspark.looks")
    await desk.store.clock.sample()
    await desk.push("young1", "young2")
    assert await desk.popped() == ["old", "young1", "young2"]
    assert await desk.store.groups.seek("q", "g", "time", datetime.now(UTC) - timedelta(minutes=1))
    assert await desk.popped() == ["young1", "young2"]
    assert await desk.store.groups.seek("q", "g", "time", datetime.now(UTC) - timedelta(hours=2))
    assert await desk.popped() == ["old", "young1", "young2"]


@pytest.mark.every_postgres
async def test_seek_to_a_time_uses_samples_and_gives_the_same_without(desk: Desk) -> None:
    times = []
    for n in range(5):
        await desk.store.clock.sample()
        times.append(datetime.now(UTC))
        await desk.push(f"m{n}")
    for n, time in enumerate(times):
        await desk.store.groups.seek("q", "g", "time", time)
        assert await desk.popped() == [f"m{k}" for k in range(n, 5)]
    desk.run("DELETE FROM queenspark.looks")
    await desk.store.groups.seek("q", "g", "time", times[3])
    assert await desk.popped() == ["m3", "m4"]


async def test_seek_in_one_partition_leaves_the_others(desk: Desk) -> None:
    await desk.push("a1", partition="a")
    await desk.push("b1", partition="b")
    await desk.popped(partitions=5)
    assert await desk.store.groups.seek("q", "g", "beginning", partition="b")
    assert await desk.popped(partitions=5) == ["b1"]


async def test_seek_revokes_leases_and_refuses_older_acks(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.store.groups.seek("q", "g", "beginning")
    assert await desk.outcomes(batch) == ["stale", "stale"]
    assert names(await desk.pop()) == ["a", "b"]


async def test_seek_of_a_queue_that_does_not_exist_says_so(desk: Desk) -> None:
    assert not await desk.store.groups.seek("nowhere", "g", "end")
    await desk.push("a")
    assert not await desk.store.groups.seek("q", "g", "end", partition="nowhere")


async def test_a_deleted_group_starts_over(desk: Desk, database: str) -> None:
    await desk.push("a")
    assert await desk.popped() == ["a"]
    other = Store(database, pool_size=2)
    await other.open()
    assert await other.groups.delete("g") == 1
    await other.close()
    assert await desk.popped() == ["a"], "also in a broker that knew the old group"


async def test_a_restarted_group_keeps_where_it_began(desk: Desk) -> None:
    await desk.push("before")
    await desk.popped(mode="new")
    await desk.push("after")
    assert await desk.popped() == ["after"]
    assert await desk.store.groups.delete("g", "q", keep_start=True) == 1
    assert await desk.popped() == ["after"]


async def test_the_start_can_be_changed_for_partitions_not_yet_read(desk: Desk) -> None:
    await desk.push("a1", partition="a")
    assert await desk.popped(mode="new") == []
    assert await desk.store.groups.set_start("g", datetime.now(UTC) - timedelta(hours=1)) == 1
    assert await desk.popped() == ["a1"]


@pytest.mark.every_postgres
async def test_lag_counts_unacked_messages(desk: Desk) -> None:
    async def lag() -> tuple[int, int]:
        (row,), _ = await desk.store.groups.page(Page())
        return row["lag"], row["processing"]

    await desk.push(*(f"a{n}" for n in range(10)), partition="a")
    await desk.push(*(f"b{n}" for n in range(5)), partition="b")
    batch = await desk.pop(4)
    assert batch is not None
    assert await lag() == (15, 4)
    await desk.ack(batch, names(batch)[:2])
    assert await lag() == (13, 2)
    await desk.push("c", partition="c")
    assert await lag() == (14, 2)
    desk.expire_leases()
    while await desk.popped(100, partitions=10):
        pass
    assert await lag() == (0, 0)
