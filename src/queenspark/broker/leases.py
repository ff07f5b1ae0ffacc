"""A cache of window leases granted by this broker: saves an ack a database lookup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

_MOST = 100_000


class Lease(NamedTuple):
    """The subject of a lease."""

    partition_id: int
    transaction_id: str
    group: str
    window_id: str


class Leases:
    """The newest leases by id. Only the database knows whether one is still valid."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}

    def remember(self, lease_id: str, lease: Lease) -> None:
        """Cache the lease of a delivered window."""
        if len(self._leases) >= _MOST:
            del self._leases[next(iter(self._leases))]
        self._leases[lease_id] = lease

    def take(self, lease_id: str) -> Lease | None:
        """Remove and return a lease; a repeated ack is left to the database."""
        return self._leases.pop(lease_id, None)

    def forget(self, lease_ids: Iterable[UUID | None]) -> None:
        """Remove leases whose windows were acked as messages."""
        if self._leases:
            for lease_id in set(lease_ids):
                self._leases.pop(str(lease_id), None)

    def __len__(self) -> int:
        return len(self._leases)
