"""Any order of push, pop, ack, nack, expire, extend, seek, dead-letter and delete, against a small model.

The model tracks the unacked messages of each group and partition. A pop must deliver the first unacked ones,
in order, and must not be empty while there are any.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from queenspark.store.dead_letters import Filter
from queenspark.store.delivery import Ack, Acked, Batch, Message, WindowPop
from queenspark.store.store import Store
from tests.store.desk import Desk, names

GROUPS = ("g1", "g2")
PARTITIONS = ("a", "b", "c")
QUEUES = count()


@dataclass
class Place:
    """One group in one partition."""

    open: list[str] = field(default_factory=list)  # unacked, in log order
    dead: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    lease: Batch | None = None
    leased: list[str] = field(default_factory=list)
    claimable: bool = True  # no live lease, or one that a failure has opened

    def revoke(self) -> None:
        """The lease is over."""
        self.lease, self.leased, self.claimable = None, [], True


class Queues(RuleBasedStateMachine):
    """Drives a store and a model side by side."""

    store: Store
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(self.store)
        self.queue = f"q{next(QUEUES)}"
        self.log: dict[str, list[str]] = {partition: [] for partition in PARTITIONS}
        self.homes: dict[str, str] = {}  # the partition of every message ever pushed
        self.places = {(group, partition): Place() for group in GROUPS for partition in PARTITIONS}
        self.partition_ids: dict[str, int] = {}
        self.leases: list[tuple[str, Batch]] = []
        self.numbers = count()

    @initialize()
    def configure(self) -> None:
        options = {"retryDelay": 0, "retryLimit": 2, "leaseTime": 3600}
        self.runner.run(self.desk.configure(self.queue, **options))

    @rule(partition=st.sampled_from(PARTITIONS), number=st.integers(1, 4))
    def push(self, partition: str, number: int) -> None:
        ids = [f"m{next(self.numbers)}" for _ in range(number)]
        pushed = self.runner.run(self.desk.push(*ids, queue=self.queue, partition=partition))
        self.partition_ids[partition] = pushed[0].partition_id
        self.log[partition] += ids
        self.homes.update(dict.fromkeys(ids, partition))
        for group in GROUPS:
            self.places[group, partition].open += ids

    @rule(group=st.sampled_from(GROUPS), batch=st.integers(1, 4), partitions=st.integers(1, 3))
    def pop(self, group: str, batch: int, partitions: int) -> None:
        found = self.runner.run(self.desk.pop(batch, group, self.queue, partitions=partitions))
        ready = [p for p in PARTITIONS if self.places[group, p].claimable and self._next(group, p)]
        assert (found is not None) == bool(ready), f"ready: {ready}, got {found and names(found)}"
        if found is None:
            return
        assert len(names(found)) <= batch
        assert len(self._by_partition(found)) <= partitions
        self._leased(group, found)

    @rule(group=st.sampled_from(GROUPS), number=st.integers(1, 4))
    def pop_each(self, group: str, number: int) -> None:
        """One message under each lease, each of another partition."""
        ready = [p for p in PARTITIONS if self.places[group, p].claimable and self._next(group, p)]
        wishes = [WindowPop(self.queue, group, 3_600_000)] * number
        found = [each for each in self.runner.run(self.store.deliverer.pop_windows(wishes)) if each]
        assert len(found) == min(number, len(ready))
        for batch in found:
            assert len(names(batch)) == 1
            self._leased(group, batch)

    def _leased(self, group: str, found: Batch) -> None:
        self.leases.append((group, found))
        for partition, ids in self._by_partition(found).items():
            place = self.places[group, partition]
            assert place.claimable, "two live leases on one partition"
            assert ids == self._next(group, partition)[: len(ids)], "not the first unacked ones, in order"
            place.lease, place.leased, place.claimable = found, ids, False

    @rule(group=st.sampled_from(GROUPS), number=st.integers(1, 3))
    def pop_for_good(self, group: str, number: int) -> None:
        found = self.runner.run(self.desk.pop(number, group, self.queue, auto_ack=True))
        if found is None:
            return
        for partition, ids in self._by_partition(found).items():
            place = self.places[group, partition]
            assert place.claimable
            assert ids == self._next(group, partition)[: len(ids)]
            self._acked(place, ids)
            place.revoke()

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), status=st.sampled_from(["completed", "completed", "failed", "retry", "dlq"]))
    def ack(self, data: st.DataObject, status: str) -> None:
        group, batch = data.draw(st.sampled_from(self.leases))
        message = data.draw(st.sampled_from(batch.messages))
        self._ack([(group, batch, message)], status)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def ack_whole(self, data: st.DataObject) -> None:
        """All that some leases have, in one request."""
        chosen = data.draw(st.lists(st.sampled_from(self.leases[-6:]), max_size=3, unique_by=id))
        deliveries = [(group, batch, message) for group, batch in chosen for message in batch.messages]
        self._ack(deliveries, "completed")

    def _ack(self, deliveries: list[tuple[str, Batch, Message]], status: str) -> None:
        acks = [
            Ack(message.partition_id, message.transaction_id, group, batch.lease_id, status, "why")
            for group, batch, message in deliveries
        ]
        results = self.runner.run(self.store.deliverer.ack(acks))
        for (group, batch, message), result in zip(deliveries, results, strict=True):
            self._judge(group, batch, message.transaction_id, status, result)

    def _judge(self, group: str, batch: Batch, id_: str, status: str, result: Acked) -> None:
        partition = self.homes[id_]
        place = self.places[group, partition]
        if place.lease is None or place.lease.lease_id != batch.lease_id:
            assert not result.accepted, "an ack under an old lease was accepted"
        elif id_ not in place.leased:
            # A pop that found nothing where a failure had opened the lease has ended it.
            ended = ("stale",) if place.claimable else ()
            assert result.outcome in ("repeated", "unleased", "unknown", *ended)
        elif result.outcome == "unknown":
            assert id_ not in self.log[partition], "a message that is there was unknown"
            place.leased = [x for x in place.leased if x in self.log[partition] or x in place.returned]
            place.claimable = place.claimable or not place.leased
        else:
            self._settle(place, id_, status, result.outcome)

    def _settle(self, place: Place, id_: str, status: str, outcome: str) -> None:
        place.leased.remove(id_)
        if status == "completed":
            assert outcome == "completed"
            self._acked(place, [id_])
        elif id_ in place.returned and status != "retry":
            assert outcome == "dead"
            place.returned.remove(id_)
            place.dead.append(id_)
        elif outcome == "dead":
            assert status != "retry"
            place.open.remove(id_)
            place.dead.append(id_)
        else:
            assert outcome == "retry"
            place.claimable = True
        if not place.leased:
            place.claimable = True

    @rule()
    def expire(self) -> None:
        self.desk.expire_leases()
        for place in self.places.values():
            if place.leased:
                place.revoke()

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        _, batch = data.draw(st.sampled_from(self.leases))
        live = any(
            place.lease is not None and place.lease.lease_id == batch.lease_id and place.leased
            for place in self.places.values()
        )
        assert (self.runner.run(self.store.deliverer.extend(batch.lease_id, 7200)) is not None) == live

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        _, batch = data.draw(st.sampled_from(self.leases))
        self.runner.run(self.store.deliverer.release(batch.lease_id))
        for place in self.places.values():
            if place.lease is not None and place.lease.lease_id == batch.lease_id and place.leased:
                place.revoke()

    @rule(group=st.sampled_from(GROUPS), to=st.sampled_from(["beginning", "end"]))
    def seek(self, group: str, to: str) -> None:
        self.runner.run(self.store.groups.seek(self.queue, group, to))
        for partition in PARTITIONS:
            place = self.places[group, partition]
            place.open = list(self.log[partition]) if to == "beginning" else []
            place.revoke()

    @rule(
        group=st.sampled_from(GROUPS),
        partition=st.sampled_from(PARTITIONS),
        to=st.sampled_from(["beginning", "end"]),
    )
    def seek_partition(self, group: str, partition: str, to: str) -> None:
        if self.runner.run(self.store.groups.seek(self.queue, group, to, partition=partition)):
            place = self.places[group, partition]
            place.open = list(self.log[partition]) if to == "beginning" else []
            place.revoke()

    @rule(group=st.sampled_from(GROUPS))
    def put_back(self, group: str) -> None:
        found = self.runner.run(self.store.dead_letters.put_back(Filter(queue=self.queue, group=group)))
        places = [self.places[group, partition] for partition in PARTITIONS]
        assert len(found) == sum(len(place.dead) for place in places)
        for place in places:
            place.returned = sorted(place.returned + place.dead, key=lambda id_: int(id_[1:]))
            place.dead = []

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        partition = data.draw(st.sampled_from(PARTITIONS))
        if not self.log[partition]:
            return
        id_ = data.draw(st.sampled_from(self.log[partition]))
        assert self.runner.run(self.store.messages.delete(self.partition_ids[partition], id_))
        self.log[partition].remove(id_)
        for group in GROUPS:
            place = self.places[group, partition]
            if id_ in place.open:
                place.open.remove(id_)
                # One leased message can no longer be acked; the others of the batch are still leased.

    def teardown(self) -> None:
        """No unacked message was lost, and they are delivered in order."""
        self.expire()
        for group in GROUPS:
            rest: dict[str, list[str]] = {partition: [] for partition in PARTITIONS}
            while (
                found := self.runner.run(self.desk.pop(100, group, self.queue, auto_ack=True))
            ) is not None:
                for partition, ids in self._by_partition(found).items():
                    rest[partition] += ids
            for partition in PARTITIONS:
                place = self.places[group, partition]
                assert rest[partition] == place.returned + place.open

    def _next(self, group: str, partition: str) -> list[str]:
        """The messages that a pop of that place may deliver: returned ones, else unacked ones."""
        place = self.places[group, partition]
        return place.returned or place.open

    def _acked(self, place: Place, ids: list[str]) -> None:
        for id_ in ids:
            (place.returned if id_ in place.returned else place.open).remove(id_)

    def _by_partition(self, batch: Batch) -> dict[str, list[str]]:
        handed: dict[str, list[str]] = {}
        for id_ in names(batch):
            handed.setdefault(self.homes[id_], []).append(id_)
        return handed


@pytest.fixture
def machine(database: str) -> Iterator[type[Queues]]:
    """The machine on a store of its own."""
    with asyncio.Runner() as runner:
        store = Store(database, pool_size=2)
        runner.run(store.open())
        Queues.store, Queues.runner = store, runner
        yield Queues
        runner.run(store.close())


@pytest.mark.every_postgres
@pytest.mark.timeout(1800)
def test_queues_behave_like_the_model(machine: type[Queues], full_size: bool) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=1000 if full_size else 25,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
