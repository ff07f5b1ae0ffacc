"""The broker's cache of window leases: empty once their windows are acked, by whichever route."""

from uuid import uuid4

import pytest

from queenspark.broker.ack import settle
from queenspark.broker.broker import Broker
from queenspark.broker.leases import Lease
from queenspark.settings import Settings
from queenspark.store.delivery import Ack, Acked


@pytest.mark.anyio
async def test_acks_of_windows_as_messages_empty_the_cache() -> None:
    broker = Broker(Settings(database_url="postgresql://nobody@localhost:1/nowhere"))
    leases = [uuid4() for _ in range(3)]
    for number, lease_id in enumerate(leases):
        broker.leases.remember(str(lease_id), Lease(number, "t", "g", "w"))
    acks = [Ack(number, "t", "g", lease_id, "completed", None) for number, lease_id in enumerate(leases[:2])]
    await settle(broker, [*acks, acks[0]._replace(lease_id=None)], [Acked("completed", 0, True, False)] * 3)
    assert len(broker.leases) == 1
    assert broker.leases.take(str(leases[2])) is not None
