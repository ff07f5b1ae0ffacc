"""`queenspark demo`: a one-minute demonstration of the system."""

from __future__ import annotations

import socket
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queenspark.cli.exits import Failure
from queenspark.cli.local_system import LocalSystem, Stopping, stopped_by_signals
from queenspark.cli.output import out, say
from queenspark.cli.server_extra import require_server
from queenspark.settings import Settings
from queenspark.signals import signals_wait

if TYPE_CHECKING:
    from queenspark.cli.demo.screen import Screen
    from queenspark.cli.demo.shop import Shop

FRAME_SECONDS = 0.25
#: How long the last windows and, on a slow machine, the start of Spark may take beyond the demo's own time.
LAST_WINDOWS_SECONDS = 30.0
FIRST_WINDOW_SECONDS = 120.0


def demo(
    seconds: Annotated[
        int, typer.Option(min=10, metavar="N", help="Duration, counted from the first window.")
    ] = 60,
) -> None:
    """Run a demo for about a minute: the whole system in a temporary folder, with a small shop.

    Producers push clicks and purchases; one stream has windows per customer, another one global windows; two
    groups consume them. On a terminal it shows a live screen, elsewhere it prints plain lines.
    """
    require_server()
    with stopped_by_signals() as stopping:
        try:
            with signals_wait():
                folder = tempfile.TemporaryDirectory(prefix="queenspark-demo-")
            with folder:
                settings = Settings(
                    data_dir=Path(folder.name) / "data", port=_free_port(), ui_port=_free_port()
                )
                _run(settings, seconds, stopping)
        except KeyboardInterrupt:
            say("Stopped.")


def _run(settings: Settings, seconds: int, stopping: Stopping) -> None:
    from queenspark.cli.demo.ledger import Ledger
    from queenspark.cli.demo.screen import Lines, Terminal, summary
    from queenspark.cli.demo.shop import Shop

    console = out()
    screen: Screen = Terminal(console) if console.is_terminal else Lines(console)
    ledger = None
    with LocalSystem(settings) as system:
        stopping.hurry = system.kill
        try:
            with screen:
                system.start(screen.say)
                assert system.ui is not None
                screen.dashboard(system.ui.url)
                ledger = Ledger()
                shop = Shop(system.broker.url, ledger)
                stopping.hurry = partial(_hurry, system, shop)
                shop.open()
                try:
                    _minute(system, shop, screen, seconds)
                except Failure:
                    shop.abandon()
                    raise
                finally:
                    stopping.begun = True
                    shop.close()
        except KeyboardInterrupt:
            pass
        finally:
            stopping.begun = True
        with suppress(OSError):  # the terminal may be gone
            if ledger is not None:
                summary(console, ledger)
        say("Stopping.")


def _hurry(system: LocalSystem, shop: Shop) -> None:
    """Stop at once, after a second Ctrl-C."""
    shop.abandon()
    system.kill()


def _minute(system: LocalSystem, shop: Shop, screen: Screen, seconds: int) -> None:
    """Show the shop from its opening until every window is delivered."""
    ledger = shop.ledger
    closing: float | None = None
    while True:
        system.check()
        shop.refresh()
        open_for = ledger.seconds - (ledger.first_window or ledger.seconds)
        if closing is None and open_for >= seconds:
            shop.stop_producing()
            closing = ledger.seconds
        if ledger.first_window is None and ledger.seconds > FIRST_WINDOW_SECONDS:
            raise Failure(f"No window arrived: {system.pipeline.last_words()}")
        state = (
            "starting Spark"
            if ledger.first_window is None
            else "running"
            if closing is None
            else "last windows"
        )
        screen.show(ledger, state, min(1.0, open_for / seconds))
        if closing is not None and (shop.done or ledger.seconds > closing + LAST_WINDOWS_SECONDS):
            return
        time.sleep(FRAME_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
