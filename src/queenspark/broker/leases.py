"""Leases of windows that this broker handed out: an ack need not ask the database what it is for."""

from __future__ import annotations

from typing import NamedTuple

_MOST = 100_000


class Lease(NamedTuple):
    """What a lease is on."""

    partition_id: int
    transaction_id: str
    group: str
    window_id: str


class Leases:
    """The newest leases by id. Whether one is still good, only the database knows."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}

    def remember(self, lease_id: str, lease: Lease) -> None:
        """A window was handed out."""
        if len(self._leases) >= _MOST:
            del self._leases[next(iter(self._leases))]
        self._leases[lease_id] = lease

    def take(self, lease_id: str) -> Lease | None:
        """What the lease is on, once: a repeated answer is for the database to judge."""
        return self._leases.pop(lease_id, None)
