"""A cache of window leases granted by this broker: saves an ack a database lookup."""

from __future__ import annotations

from typing import NamedTuple

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
