"""The schedule of kills in a run, driven by the progress of the producers."""

import asyncio
from collections.abc import Callable
from itertools import zip_longest

from queenspark.embedded import EmbeddedPostgres
from tests.broker_process import Broker
from tests.crash.ledger import Ledger


class Crashes:
    """Kills the broker and PostgreSQL in turn, evenly over the run, and starts them again."""

    def __init__(self, broker: Broker, postgres: EmbeddedPostgres, of_broker: int, of_postgres: int) -> None:
        self._broker = broker
        self._postgres = postgres
        self._plan = in_turn(self.kill_broker, of_broker, self.kill_postgres, of_postgres)
        self.happened = 0

    async def run(self, ledger: Ledger) -> None:
        """Kill whenever the next share of the pushes is done."""
        for number, kill in enumerate(self._plan, start=1):
            await ledger.until_pushed(ledger.total * number // (len(self._plan) + 1))
            await asyncio.to_thread(kill)
            self.happened += 1

    def kill_broker(self) -> None:
        """Kill the broker; a supervisor starts it again."""
        assert self._broker.process.poll() is None, "the broker ended by itself"
        self._broker.kill()
        self._broker.start()

    def kill_postgres(self) -> None:
        """Kill the postmaster and start it again; the broker has to live with it."""
        self._postgres.kill()
        self._postgres.start()


def in_turn(
    first: Callable[[], None], firsts: int, second: Callable[[], None], seconds: int
) -> list[Callable[[], None]]:
    """Both kinds mixed: as long as there are enough, the second after each first ones of its share."""
    share = max(1, firsts // seconds) if seconds else firsts
    groups = [[first] * min(share, firsts - start) for start in range(0, firsts, share)] if firsts else []
    mixed: list[Callable[[], None]] = []
    for group, one in zip_longest(groups, [second] * seconds):
        mixed += group or []
        mixed += [one] if one else []
    return mixed
