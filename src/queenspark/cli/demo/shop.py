"""The shop of the demo: customers click and buy; two streams, two groups."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from queenspark.cli.demo.ledger import Ledger
from queenspark.client import Outgoing, Queen, QueenError, Window

CUSTOMERS = ("ada", "ben", "cleo", "dora", "emil", "fay", "gus", "hana")
PAGES = ("tea", "cups", "kettles", "honey", "spoons")
PRICES = (4.5, 7.0, 12.9, 19.0, 34.5)
WINDOW_SECONDS = 5
GRACE_SECONDS = 1
PRODUCERS = 3
#: Messages that one producer pushes at a time, and how often.
AT_ONCE, EVERY = 6, 0.1
#: Poll interval while waiting for other threads.
JOIN_SECONDS = 0.1
#: The mailer fails once in this many windows, to show redelivery.
STUMBLES = 20

BASKETS, SHOP = "baskets", "shop"
ANALYTICS, MAILER = "analytics", "mailer"


class Shop:
    """Producers and consumers in threads, until it is closed."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self.ledger = ledger
        self._queen = Queen(url)
        self._closing = threading.Event()
        self._abandoned = threading.Event()
        self._producers: list[threading.Thread] = []
        self._consumers: list[threading.Thread] = []
        self._stumbled: set[str] = set()

    def open(self) -> None:
        """Create queues and streams, and start producers and consumers."""
        for queue in ("clicks", "purchases"):
            self._queen.queue(queue).namespace("demo").create()
        for stream, partitioned in ((BASKETS, True), (SHOP, False)):
            (
                self._queen.stream(stream, "demo")
                .sources(["clicks", "purchases"])
                .partitioned(partitioned)
                .tumbling_time(WINDOW_SECONDS)
                .grace_period(GRACE_SECONDS)
                .define()
            )
        for n in range(PRODUCERS):
            self._start(self._producers, partial(self._produce, random.Random(n)))
        self._start(self._consumers, partial(self._consume, BASKETS, ANALYTICS, _conversion, 2))
        self._start(self._consumers, partial(self._consume, BASKETS, MAILER, self._mail, 2))
        self._start(self._consumers, partial(self._consume, SHOP, ANALYTICS, _turnover, 1))

    def stop_producing(self) -> None:
        """Stop the producers."""
        self._closing.set()
        self._wait_for(self._producers)

    def close(self) -> None:
        """Stop producers and consumers; windows in progress are finished."""
        self.stop_producing()
        self._queen.stop()
        self._wait_for(self._consumers)
        if not self._abandoned.is_set():
            with suppress(QueenError):
                self._queen.close()

    def abandon(self) -> None:
        """Close without waiting: the broker is going down."""
        self._abandoned.set()

    def refresh(self) -> None:
        """Query the broker for the progress of the streams."""
        with suppress(QueenError):
            stats = self._queen.admin.stream_stats()
            self.ledger.pipeline = stats["pipeline"]
            self.ledger.progress = {row["name"]: row for row in stats["byStream"]}

    @property
    def done(self) -> bool:
        """Whether every group has received every message."""
        wanted = self.ledger.total
        expected = ((BASKETS, ANALYTICS), (BASKETS, MAILER), (SHOP, ANALYTICS))
        return all(
            pair in self.ledger.groups and self.ledger.groups[pair].messages >= wanted for pair in expected
        )

    def _wait_for(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            while thread.is_alive() and not self._abandoned.is_set():
                thread.join(JOIN_SECONDS)

    def _start(self, threads: list[threading.Thread], work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        threads.append(thread)
        thread.start()

    def _produce(self, chance: random.Random) -> None:
        while not self._closing.wait(EVERY):
            bought = [_purchase(chance) for _ in range(AT_ONCE) if chance.random() < 0.25]
            clicked = [_click(chance) for _ in range(AT_ONCE - len(bought))]
            for queue, messages in (("clicks", clicked), ("purchases", bought)):
                with suppress(QueenError):
                    self.ledger.push(queue, len(self._queen.queue(queue).push(messages)))

    def _consume(self, stream: str, group: str, judge: Callable[[Window], str], workers: int) -> None:
        def handle(window: Window) -> None:
            said = judge(window)
            self.ledger.deliver(window, GRACE_SECONDS, said)

        consumer = self._queen.consumer(stream, group, namespace="demo", on_event=self.ledger.listen)
        with suppress(QueenError):
            consumer.process(handle, concurrency=workers)

    def _mail(self, window: Window) -> str:
        """Write to a customer; the mail server sometimes fails, and the window is redelivered."""
        again = window.id in self._stumbled
        if not again and hash(window.id) % STUMBLES == 0:
            self._stumbled.add(window.id)
            raise ConnectionError("the mail server did not respond")
        time.sleep(0.02)  # as a mail takes
        seen = window.filter(lambda message: message.queue == "clicks").group_by("data.page")
        favourite = max(seen, key=lambda page: len(seen[page]), default="nothing")
        return f"emailed about {favourite}" + (", on the second attempt" if again else "")


def _click(chance: random.Random) -> Outgoing:
    return Outgoing({"page": chance.choice(PAGES)}, partition=chance.choice(CUSTOMERS))


def _purchase(chance: random.Random) -> Outgoing:
    return Outgoing({"amount": chance.choice(PRICES)}, partition=chance.choice(CUSTOMERS))


def _conversion(window: Window) -> str:
    purchases = window.filter(lambda message: message.queue == "purchases")
    clicks = window.count - len(purchases)
    revenue = purchases.aggregate(sum="data.amount")["sum"]
    return f"{clicks} clicks, {len(purchases)} bought, {revenue:,.2f} €"


def _turnover(window: Window) -> str:
    found = window.aggregate(sum="data.amount", avg="data.amount")
    average = found["avg"] or 0
    return f"{found['sum']:,.2f} € total, {average:,.2f} € per purchase"
