"""Leases and acks. The letters are known bugs of other queues."""

import asyncio
from uuid import uuid4

import pytest

from tests.store.desk import Desk, item, names

pytestmark = pytest.mark.anyio


async def test_b_acking_the_last_of_a_batch_loses_none_of_the_others(desk: Desk) -> None:
    await desk.push("m1", "m2", "m3")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, ["m3"]) == ["completed"]
    desk.expire_leases()
    assert names(await desk.pop()) == ["m1", "m2"]


async def test_c_acking_out_of_order_brings_nothing_back(desk: Desk) -> None:
    await desk.push("a1", "a2")
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, ["a2"])
    await desk.ack(batch, ["a1"])
    desk.expire_leases()
    assert await desk.pop() is None


async def test_d_a_failure_between_successes_is_retried_and_then_dead(desk: Desk) -> None:
    await desk.configure(retryLimit=1, retryDelay=1000)
    await desk.push("ok1", "bad", "ok2")
    batch = await desk.pop()
    assert batch is not None
    results = await desk.outcomes(batch, status=["completed", "failed", "completed"], error="broken")
    assert results == ["completed", "retry", "completed"]
    assert await desk.pop() is None, "the retry waits for its delay"
    desk.end_waits()
    again = await desk.pop()
    assert again is not None
    assert [(message.transaction_id, message.retries) for message in again.messages] == [("bad", 1)]
    assert await desk.outcomes(again, status="failed", error="still broken") == ["dead"]
    assert desk.run("SELECT transaction_id, error, attempts FROM queenspark.dead_letters") == [
        ("bad", "still broken", 2)
    ]
    assert await desk.pop() is None


async def test_e_two_consumers_never_hold_the_same_message(desk: Desk) -> None:
    for partition in range(5):
        await desk.push(*(f"{partition}-{n}" for n in range(20)), partition=f"p{partition}")
    seen: list[str] = []

    async def consume() -> None:
        while (batch := await desk.pop(3)) is not None:
            seen.extend(names(batch))
            await desk.ack(batch)

    await asyncio.gather(*(consume() for _ in range(6)))
    while (batch := await desk.pop(100, partitions=10)) is not None:
        seen.extend(names(batch))
        await desk.ack(batch)
    assert len(seen) == len(set(seen)) == 100


async def test_a_partition_has_one_lease_per_group_at_a_time(desk: Desk) -> None:
    await desk.push("a", "b")
    assert names(await desk.pop(1)) == ["a"]
    assert await desk.pop(1) is None
    assert names(await desk.pop(1, "another group")) == ["a"]


async def test_an_expired_lease_is_taken_over_and_its_acks_are_refused(desk: Desk) -> None:
    await desk.push("a")
    old = await desk.pop()
    assert old is not None
    desk.expire_leases()
    assert await desk.outcomes(old) == ["stale"]
    new = await desk.pop()
    assert new is not None
    assert names(new) == ["a"]
    assert new.messages[0].lease_expired
    assert new.messages[0].retries == 0, "an expired lease is no failed attempt"
    assert await desk.outcomes(old) == ["stale"]
    assert await desk.outcomes(new) == ["completed"]


async def test_repeating_an_ack_is_harmless(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, ["a"]) == ["completed"]
    assert await desk.outcomes(batch) == ["repeated", "completed"]
    assert await desk.outcomes(batch) == ["repeated", "repeated"]
    assert await desk.pop() is None


async def test_f_rejected_acks_are_reported(desk: Desk) -> None:
    await desk.push("a")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, lease_id=uuid4()) == ["stale"]
    assert await desk.outcomes(batch, group="nobody") == ["unknown"]
    strangers = batch._replace(messages=[batch.messages[0]._replace(transaction_id="unheard of")])
    assert await desk.outcomes(strangers) == ["unknown"]
    assert await desk.outcomes(batch) == ["completed"]


async def test_a_failed_message_frees_the_rest_of_its_batch(desk: Desk) -> None:
    await desk.configure(retryDelay=0)
    await desk.push("a", "b", "c")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, ["a"], "failed") == ["retry"]
    assert await desk.outcomes(batch, ["b"]) == ["completed"], "the lease still covers the others"
    again = await desk.pop()
    assert names(again) == ["a", "c"]
    assert await desk.outcomes(batch, ["c"]) == ["stale"], "now another consumer holds the lease"


async def test_retries_wait_longer_each_time(desk: Desk) -> None:
    await desk.configure(retryLimit=5, retryDelay=1000)
    await desk.push("a")
    waits = []
    for _ in range(3):
        batch = await desk.pop()
        assert batch is not None
        await desk.ack(batch, status="failed")
        waits += desk.run(
            "SELECT round(extract(epoch FROM retry_at - acked_at))::integer FROM queenspark.places"
        )
        desk.end_waits()
    assert waits == [(1,), (2,), (4,)]


async def test_a_message_that_waits_for_its_retry_blocks_its_partition_only(desk: Desk) -> None:
    await desk.push("a1", partition="a")
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status="failed")
    await desk.push("a2", partition="a")
    await desk.push("b1", partition="b")
    assert names(await desk.pop(10, partitions=5)) == ["b1"]
    desk.end_waits()
    retry = await desk.pop()
    assert retry is not None
    assert names(retry) == ["a1"]
    await desk.ack(retry)
    assert names(await desk.pop()) == ["a2"]


async def test_status_retry_is_redelivered_at_once_and_counts_nothing(desk: Desk) -> None:
    await desk.push("a")
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status="retry")
    again = await desk.pop()
    assert again is not None
    assert [(message.transaction_id, message.retries) for message in again.messages] == [("a", 0)]


async def test_status_dlq_goes_to_the_dead_letters_at_once(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, ["a"], "dlq") == ["dead"]
    desk.expire_leases()
    assert names(await desk.pop()) == ["b"]


async def test_without_dead_letters_a_message_is_retried_forever(desk: Desk) -> None:
    await desk.configure(retryLimit=0, retryDelay=0, dlqAfterMaxRetries=False)
    await desk.push("a")
    for _ in range(5):
        batch = await desk.pop()
        assert batch is not None
        assert await desk.outcomes(batch, status="failed") == ["retry"]


async def test_a_dead_letter_queue_gets_a_copy(desk: Desk) -> None:
    await desk.configure(retryLimit=0, deadLetterQueue="graves")
    await desk.push("a")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, status="failed") == ["dead"]
    assert await desk.popped(queue="graves") == ["a"]


async def test_extending_never_shortens_a_lease(desk: Desk) -> None:
    await desk.configure(leaseTime=60)
    await desk.push("a")
    batch = await desk.pop()
    assert batch is not None
    deliverer = desk.store.deliverer
    longer = await deliverer.extend(batch.lease_id, 300)
    shorter = await deliverer.extend(batch.lease_id, 1)
    assert longer is not None
    assert shorter == longer
    await desk.ack(batch)
    assert await deliverer.extend(batch.lease_id, 60) is None, "nothing is leased now"
    assert await deliverer.extend(uuid4(), 60) is None


async def test_an_expired_lease_cannot_be_extended(desk: Desk) -> None:
    await desk.push("a")
    batch = await desk.pop()
    assert batch is not None
    desk.expire_leases()
    assert await desk.store.deliverer.extend(batch.lease_id, 60) is None


async def test_a_released_lease_is_ready_at_once_and_counts_nothing(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    assert await desk.store.deliverer.release(batch.lease_id) == 1
    again = await desk.pop()
    assert again is not None
    assert [(message.transaction_id, message.retries) for message in again.messages] == [("a", 0), ("b", 0)]


async def test_a_pop_over_several_partitions_has_one_lease(desk: Desk) -> None:
    for partition in "abc":
        await desk.push(f"{partition}1", f"{partition}2", partition=partition)
    batch = await desk.pop(5, partitions=2)
    assert batch is not None
    assert names(batch) == ["a1", "a2", "b1", "b2"]
    assert {result.outcome for result in await desk.ack(batch)} == {"completed"}
    assert names(await desk.pop()) == ["c1", "c2"]


async def test_a_pop_of_one_partition_takes_from_that_one(desk: Desk) -> None:
    await desk.push("a1", partition="a")
    await desk.push("b1", partition="b")
    batch = await desk.pop(partition="b")
    assert batch is not None
    assert names(batch) == ["b1"]
    assert await desk.pop(partition="b") is None
    assert await desk.pop(partition="nowhere") is None
    await desk.ack(batch)
    await desk.push("b2", partition="b")
    assert names(await desk.pop(10, partitions=5)) == ["a1", "b2"]


async def test_auto_ack_takes_a_retry_for_good(desk: Desk) -> None:
    await desk.configure(retryDelay=0)
    await desk.push("a", "b", "c")
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status=["failed", "completed", "failed"])
    assert await desk.popped(1) == ["a"]
    assert await desk.popped() == ["c"]
    assert await desk.pop() is None


async def test_delayed_processing_hides_a_message_and_keeps_order(desk: Desk) -> None:
    await desk.configure(delayedProcessing=60)
    await desk.push("old")
    desk.age(120)
    await desk.push("young")
    assert await desk.popped() == ["old"]
    assert await desk.pop() is None
    above, seconds = await desk.store.deliverer.next_check("q", "g")
    assert not above
    assert seconds is not None
    assert 50 < seconds <= 60
    desk.age(60)
    desk.end_waits()
    assert await desk.popped() == ["young"]


async def test_window_buffer_hides_a_partition_until_pushes_pause(desk: Desk) -> None:
    await desk.configure(windowBuffer=30)
    await desk.push("a")
    desk.age(60)
    await desk.push("b")
    assert await desk.pop() is None
    desk.age(30)
    desk.end_waits()
    assert await desk.popped() == ["a", "b"]


async def test_ttl_drops_expired_messages(desk: Desk) -> None:
    await desk.configure(ttl=60)
    await desk.push("old")
    desk.age(61)
    await desk.push("young")
    assert await desk.popped() == ["young"]
    assert desk.run("SELECT count(*) FROM queenspark.dead_letters") == [(0,)]


async def test_a_message_that_waited_too_long_becomes_a_dead_letter(desk: Desk) -> None:
    await desk.configure(maxWaitTimeSeconds=60)
    await desk.push("old")
    desk.age(61)
    await desk.push("young")
    assert await desk.popped() == ["young"]
    ((transaction_id, error),) = desk.run("SELECT transaction_id, error FROM queenspark.dead_letters")
    assert transaction_id == "old"
    assert "maxWaitTimeSeconds" in error


async def test_a_deleted_message_does_not_block_its_lease(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    await desk.store.messages.delete(batch.messages[0].partition_id, "a")
    assert await desk.outcomes(batch) == ["unknown", "completed"]
    desk.expire_leases()
    await desk.push("c")
    assert names(await desk.pop()) == ["c"]


async def test_a_window_buffer_that_has_passed_leaves_an_empty_place_idle(desk: Desk) -> None:
    await desk.configure(windowBuffer=1)
    await desk.push("a")
    desk.age(10)
    assert await desk.popped() == ["a"]
    assert await desk.pop() is None
    assert desk.run("SELECT available_at FROM queenspark.places") == [(None,)]


async def test_a_lease_goes_on_without_a_message_that_was_deleted(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    await desk.store.messages.delete(batch.messages[0].partition_id, "a")
    assert await desk.outcomes(batch) == ["unknown", "completed"]
    await desk.push("c")
    assert names(await desk.pop()) == ["c"], "nothing of the lease is left to ack"


async def test_a_message_that_was_never_delivered_cannot_be_acked(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop(1)
    assert batch is not None
    stranger = batch._replace(messages=[batch.messages[0]._replace(transaction_id="b")])
    assert await desk.outcomes(stranger) == ["unleased"]
    assert await desk.outcomes(stranger, status="dlq") == ["unleased"]


async def test_a_batch_is_cut_where_it_becomes_too_large(desk: Desk) -> None:
    await desk.store.pusher.push([item("q", f"t{n}", payload="x" * 6_000_000) for n in range(5)])
    assert await desk.popped() == ["t0", "t1", "t2"]
    assert await desk.popped() == ["t3", "t4"]


async def test_many_expired_messages_are_stepped_over_in_portions(desk: Desk) -> None:
    await desk.configure(ttl=60)
    for start in range(0, 12_000, 4000):
        await desk.push(*(f"t{n}" for n in range(start, start + 4000)))
    desk.age(61)
    await desk.push("young")
    assert await desk.popped() == ["young"]


async def test_the_next_check_of_one_partition_covers_only_that_partition(desk: Desk) -> None:
    await desk.push("a1", partition="a")
    await desk.push("b1", partition="b")
    batch = await desk.pop(partition="b")
    assert batch is not None
    await desk.ack(batch)
    assert await desk.pop(partition="b") is None
    assert await desk.store.deliverer.next_check("q", "g", "b") == (False, None)


async def test_acked_retries_leave_nothing_behind(desk: Desk) -> None:
    await desk.configure(retryDelay=0)
    await desk.push("a")
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status="failed")
    assert await desk.popped() == ["a"]
    assert desk.run("SELECT count(*) FROM queenspark.attempts") == [(0,)]
