"""Pops, discovery and acks of one group never wait for each other in a circle."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from queenspark.store.functions import FUNCTION_SET
from tests.database import connect
from tests.store.desk import Desk, names

pytestmark = pytest.mark.anyio

Connection = psycopg.Connection[tuple[Any, ...]]

GATE = 4711  # an advisory lock

#: A role whose statements stop at the gate after they have read a row of `places` and before they lock it.
GATED_ROLE = f"""
    CREATE FUNCTION queenspark.at_gate() RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_lock_shared({GATE});
        RETURN pg_advisory_unlock_shared({GATE});
    END
    $$;
    ALTER TABLE queenspark.places ENABLE ROW LEVEL SECURITY;
    CREATE POLICY gate ON queenspark.places USING (queenspark.at_gate());
    CREATE ROLE gated;
    GRANT USAGE ON SCHEMA queenspark, {FUNCTION_SET} TO gated;
    GRANT ALL ON ALL TABLES IN SCHEMA queenspark TO gated;
"""


@contextmanager
def gated(desk: Desk) -> Iterator[Connection]:
    """A connection whose statements stop at the gate while a test holds it."""
    desk.run(GATED_ROLE)
    with connect(desk.store.database.url) as connection:
        connection.execute("SET ROLE gated")
        try:
            yield connection
        finally:
            connection.execute("RESET ROLE; DROP OWNED BY gated; DROP ROLE gated")


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a state."""
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


def waiting_for(desk: Desk, event: str) -> int:
    """Number of statements that wait for a lock of this kind."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = %s"
    ((count,),) = desk.run(query, event)
    return int(count)


async def lose_a_place(
    desk: Desk, popping: Connection, other: Connection, lock: str
) -> "asyncio.Task[list[tuple[Any, ...]]]":
    """Start a pop that finds the place `p` ready, but locks it only after another pop was done with it.

    Meanwhile the other connection takes a lock. PostgreSQL keeps the lock of a row that `SKIP LOCKED`
    rejects after it was locked: from now on, the pop holds the place that it did not get.
    """

    def pop() -> list[tuple[Any, ...]]:
        return popping.execute("SELECT * FROM pop(1, 1, 1, ARRAY[gen_random_uuid()], false)").fetchall()

    with connect(desk.store.database.url) as gate:
        gate.execute("SELECT pg_advisory_lock(%s)", (GATE,))
        popped = asyncio.create_task(asyncio.to_thread(pop))
        await until(lambda: popped.done() or waiting_for(desk, "advisory") == 1)
        assert not popped.done(), await popped
        assert await desk.popped() == ["a"]
        await desk.push("b", partition="other")
        await desk.push("c")
        other.execute(lock)
    return popped


LOCK_PLACE = """SELECT 1 FROM queenspark.places p JOIN queenspark.partitions t ON t.id = p.partition_id
    WHERE t.name = '{}' FOR UPDATE OF p"""
LOCK_GROUP = "SELECT 1 FROM queenspark.groups FOR NO KEY UPDATE"


async def test_a_pop_that_lost_a_place_does_not_wait_for_the_group(desk: Desk) -> None:
    """Discovery holds the group and waits for places."""
    await desk.push("a")
    desk.run("SELECT discover((SELECT ensure_group(1, 'g', 'all', NULL)))")
    with gated(desk) as popping, desk.connect() as discovering:
        popped = await lose_a_place(desk, popping, discovering, LOCK_GROUP)
        await until(lambda: popped.done() or waiting_for(desk, "transactionid") > 0)
        discovering.execute(LOCK_PLACE.format("p"))
        discovering.rollback()
        assert [row[1] for row in await popped] == [None], "there is more, to be had in a new transaction"
    assert sorted([*await desk.popped(), *await desk.popped()]) == ["b", "c"]


async def test_a_pop_that_lost_a_place_does_not_wait_for_other_places(desk: Desk) -> None:
    """An ack holds a place and waits for one that comes after it."""
    await desk.push("z", partition="other")
    assert await desk.popped() == ["z"]
    await desk.push("a")
    desk.run("SELECT discover(1)")
    with gated(desk) as popping, desk.connect() as acking:
        popped = await lose_a_place(desk, popping, acking, LOCK_PLACE.format("other"))
        await until(lambda: popped.done() or waiting_for(desk, "transactionid") > 0)
        acking.execute(LOCK_PLACE.format("p"))
        acking.rollback()
        assert [row[1] for row in await popped] == [None], "there is more, to be had in a new transaction"
    assert sorted([*await desk.popped(), *await desk.popped()]) == ["b", "c"]


async def test_a_pop_that_waits_for_the_group_holds_no_place(desk: Desk) -> None:
    await desk.push("a")
    assert await desk.popped() == ["a"]
    desk.run("UPDATE queenspark.places SET available_at = clock_timestamp()")  # it will turn out to be empty
    await desk.push("b", partition="other")
    with desk.connect() as discovering:
        discovering.execute(LOCK_GROUP)
        popped = asyncio.create_task(desk.pop())
        await until(lambda: waiting_for(desk, "transactionid") == 1)
        discovering.execute(LOCK_PLACE.format("p") + " NOWAIT")
    assert names(await popped) == ["b"]


GATED_DEAD_LETTERS = f"""
    CREATE FUNCTION queenspark.at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared({GATE});
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER gate AFTER INSERT ON queenspark.messages
    FOR EACH ROW EXECUTE FUNCTION queenspark.at_gate();
"""


async def test_pops_of_two_groups_that_bury_the_same_messages_do_not_wait_in_a_circle(desk: Desk) -> None:
    """Both add them to the dead letter queue, and each takes the partitions in its own order."""
    await desk.configure(maxWaitTimeSeconds=60, deadLetterQueue="dead")
    for partition in ("p", "other"):
        await desk.push("before", queue="dead", partition=partition)
        await desk.push("a", partition=partition)
    desk.age(120)
    for group in ("g", "h"):
        desk.run("SELECT discover(ensure_group(1, %s, 'all', NULL))", group)
    desk.run(
        "UPDATE queenspark.places SET available_at = clock_timestamp()"
        " - make_interval(secs => CASE group_id WHEN 1 THEN partition_id ELSE 1000 - partition_id END)"
    )
    desk.run(GATED_DEAD_LETTERS)

    def pop(group_id: int) -> list[tuple[Any, ...]]:
        with connect(desk.store.database.url) as connection:
            query = "SELECT * FROM pop(%s, 10, 10, ARRAY[gen_random_uuid()], false)"
            return connection.execute(query, (group_id,)).fetchall()

    with connect(desk.store.database.url) as gate:
        gate.execute("SELECT pg_advisory_lock(%s)", (GATE,))
        pops = [asyncio.create_task(asyncio.to_thread(pop, group_id)) for group_id in (1, 2)]
        await until(lambda: waiting_for(desk, "advisory") == 2)
    for popped in pops:
        assert [row[1] for row in await popped] == [None], "there is more, to be had in a new transaction"
    assert await desk.popped() == await desk.popped(group="h") == []
    assert await desk.popped(queue="dead", partitions=10) == ["before", "a"] * 2
    assert desk.run("SELECT count(*) FROM queenspark.dead_letters") == [(4,)]


async def test_a_pop_that_ends_as_a_deadlock_is_repeated(desk: Desk) -> None:
    """Nothing was delivered, so the failure is invisible."""
    await desk.push("a")
    desk.run(
        """
        CREATE SEQUENCE queenspark.tries;
        CREATE FUNCTION queenspark.deadlock_at_first() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('queenspark.tries') <= 2 THEN
                RAISE EXCEPTION 'deadlock detected' USING ERRCODE = 'deadlock_detected';
            END IF;
            RETURN NEW;
        END
        $$;
        CREATE TRIGGER deadlock BEFORE UPDATE ON queenspark.places
        FOR EACH ROW EXECUTE FUNCTION queenspark.deadlock_at_first();
        """
    )
    assert names(await desk.pop()) == ["a"]
