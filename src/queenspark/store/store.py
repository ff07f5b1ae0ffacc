"""The store as one object: all SQL, by noun."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set

from ..settings import EncryptionKeys
from .api_keys import ApiKeys
from .append import Appender, Push
from .audit import Audit
from .catalog import Catalog
from .clock import Clock
from .counts import Counts
from .database import Database
from .dead_letters import DeadLetters
from .delivery import Deliverer
from .encryption import Cipher
from .groups import Groups
from .hydration import Hydration
from .jobs import Jobs
from .maintenance import Maintenance
from .messages import Messages
from .news import tell_of_pushes
from .push import Item, Pushed, Pusher
from .queues import Queues
from .rates import Rates
from .samples import Samples
from .server import Server
from .standing import Standings
from .streams import Streams
from .sweeper import Sweeper
from .timeline import Timeline
from .traces import Traces
from .transaction import Transactions


class Store:
    """The entry point to PostgreSQL."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 16,
        encryption_key: EncryptionKeys | bytes | None = None,
        retention_batch: int = 5000,
        stream_hold_seconds: float = 86400.0,
    ) -> None:
        self.database = Database(url, pool_size)
        self.cipher = Cipher(encryption_key)
        self.catalog = Catalog(self.database)
        self.counts = Counts(self.database)
        self.groups = Groups(self.database, self.catalog)
        self.queues = Queues(self.database, self.catalog, self.groups)
        self.pusher = Pusher(self.database, self.catalog, self.cipher)
        self.deliverer = Deliverer(self.database, self.catalog, self.cipher)
        self.maintenance = Maintenance(self.database, self.catalog, self.pusher, self.cipher)
        self.transactions = Transactions(
            self.database, self.catalog, self.pusher, self.deliverer, self.maintenance
        )
        self.streams = Streams(self.database, self.catalog)
        self.jobs = Jobs(self.database, self.catalog, self.cipher)
        self.standings = Standings(self.database)
        self.hydration = Hydration(self.database, self.cipher)
        self.dead_letters = DeadLetters(self.database, self.cipher)
        self.messages = Messages(self.database, self.cipher)
        self.traces = Traces(self.database)
        self.api_keys = ApiKeys(self.database)
        self.audit = Audit(self.database)
        self.clock = Clock(self.database)
        self.timeline = Timeline(self.database)
        self.samples = Samples(self.database)
        self.rates = Rates(self.database)
        self.server = Server(self.database)
        self.sweeper = Sweeper(self.database, retention_batch, stream_hold_seconds)

    def appender(
        self,
        push: Push | None = None,
        is_staging: Callable[[], Awaitable[bool]] | None = None,
        wake: Callable[[Set[str]], Awaitable[None]] | None = None,
    ) -> Appender:
        """Build an appender; by default it queries and notifies the database on each push."""
        return Appender(
            self.catalog,
            self.queues,
            self.maintenance,
            self.transactions,
            push=push or self._push,
            is_staging=is_staging or self.maintenance.is_staging,
            wake=wake or self._wake,
        )

    async def _push(self, items: Sequence[Item], _: int) -> list[Pushed]:
        return await self.pusher.push(items)

    async def _wake(self, queues: Set[str]) -> None:
        await tell_of_pushes(self.database, queues)

    async def open(self, seconds: float = 15.0) -> None:
        """Connect."""
        await self.database.open(seconds)

    def forget(self, queue: str | None = None) -> None:
        """Invalidate the cache of one queue (and of the stream of a window queue), or of all."""
        self.catalog.forget(queue)
        self.streams.forget(queue)

    async def close(self) -> None:
        """Disconnect."""
        await self.database.close()
