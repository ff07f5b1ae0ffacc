"""Places: lease holders, and invariants."""

from typing import Any

import psycopg
import pytest

from queenspark.store.delivery import WindowPop
from tests.database import connect
from tests.store.desk import Desk, item, names

pytestmark = pytest.mark.anyio


async def holders(desk: Desk) -> dict[str, Any]:
    """The holder of the live lease of each partition."""
    places = await desk.store.groups.cursors([1])
    assert all((place["lease_holder"] is None) <= (place["leased_at"] is None) for place in places)
    return {place["partition"]: place["lease_holder"] for place in places}


async def test_the_holder_of_a_lease_is_known_while_it_lives(desk: Desk) -> None:
    await desk.push("a")
    batch = await desk.pop(holder="worker-1")
    assert batch is not None
    assert await holders(desk) == {"p": "worker-1"}
    desk.expire_leases()
    assert await holders(desk) == {"p": None}
    batch = await desk.pop(holder="worker-2")
    assert batch is not None
    assert await holders(desk) == {"p": "worker-2"}
    await desk.ack(batch)
    assert await holders(desk) == {"p": None}


async def test_each_window_has_the_consumer_that_polled_for_it(desk: Desk) -> None:
    for partition in "abc":
        await desk.push(f"{partition}1", partition=partition)
    wishes = [WindowPop("q", "g", 60_000, holder=f"worker-{n}") for n in range(3)]
    batches = await desk.store.deliverer.pop_windows(wishes)
    expected = {batch.messages[0].partition: f"worker-{n}" for n, batch in enumerate(batches) if batch}
    assert len(expected) == 3
    assert await holders(desk) == expected


async def test_a_pop_of_an_older_version_shows_no_holder(desk: Desk) -> None:
    """It does not know the columns and leaves those of the lease before."""
    await desk.push("a")
    await desk.pop(holder="worker-1")
    desk.run("UPDATE queenspark.places SET lease_id = gen_random_uuid()")
    assert await holders(desk) == {"p": None}


@pytest.mark.parametrize(
    "change",
    [
        "cursor_txid = end_txid + 1",
        "pending = '{}', leased = '{}', cursor_txid = 0",
        "lease_id = NULL, lease_expires_at = NULL",
        "lease_expires_at = NULL",
        "available_at = NULL",
        "returned = -1",
    ],
)
async def test_a_place_that_contradicts_itself_cannot_be_stored(desk: Desk, change: str) -> None:
    await desk.push("a")
    assert names(await desk.pop()) == ["a"]
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.run(f"UPDATE queenspark.places SET {change}")


async def test_places_stay_small_under_steady_work(desk: Desk) -> None:
    """Each change of a place leaves a dead row: 40,000 of them here, for 200 places."""
    await desk.store.pusher.push([item("q", f"t{n}", f"p{n}") for n in range(200)])
    assert await desk.pop() is not None
    size = "SELECT pg_total_relation_size('queenspark.places')"
    for _ in range(20):
        with connect(desk.store.database.url) as working:
            for _ in range(10):
                working.execute(
                    "UPDATE queenspark.places SET available_at = clock_timestamp(), acked_at = now()"
                )
            working.execute("SELECT pg_stat_force_next_flush()")
            working.execute("SELECT 1")
        assert await desk.store.sweeper.vacuum_places()
    assert desk.run(size)[0][0] < 1_000_000
    assert not await desk.store.sweeper.vacuum_places(), "there is nothing to do"
