"""Output of the demo: a live screen on a terminal, plain lines elsewhere, and a summary."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from queenspark.cli.demo.ledger import Delivered, Ledger
from queenspark.cli.demo.next_steps import next_steps
from queenspark.cli.demo.shop import ANALYTICS, BASKETS, CUSTOMERS, MAILER, SHOP, WINDOW_SECONDS
from queenspark.signals import signals_wait

WIDEST = 110
LINE_SECONDS = 5.0
#: Lines of the screen above the list of windows.
ABOVE = 17


class Screen(Protocol):
    """An output for the demo."""

    def __enter__(self) -> Screen:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """End."""

    def say(self, sentence: str) -> None:
        """Show a step before or after the demo itself."""

    def dashboard(self, url: str) -> None:
        """Show the address of the dashboard."""

    def show(self, ledger: Ledger, state: str, share: float) -> None:
        """Show the progress; `share` is the elapsed fraction of the demo."""


class Terminal:
    """The whole terminal, redrawn a few times a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._dashboard = ""
        self._live = Live(console=console, screen=True, auto_refresh=False, transient=True)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        with signals_wait(), suppress(OSError):  # the terminal may be gone
            self._live.stop()

    def say(self, sentence: str) -> None:
        """A sentence in the middle of an empty screen."""
        self._draw(Padding(Text(sentence, style="dim"), (2, 4)))

    def dashboard(self, url: str) -> None:
        """Keep the address in the headline."""
        self._dashboard = url

    def show(self, ledger: Ledger, state: str, share: float) -> None:
        """Draw the screen."""
        width = min(self._console.width - 4, WIDEST)
        room = max(3, self._console.height - ABOVE)
        parts = Group(
            _head(state, share, width, self._dashboard),
            Text(),
            _way(ledger),
            Text(),
            _streams(ledger),
            Text(),
            Rule("windows, newest first", style="dim", align="left", characters="─"),
            _windows(ledger, room),
        )
        table = Table.grid()
        table.add_column(width=width)
        table.add_row(parts)
        self._draw(Padding(table, (1, 2)))

    def _draw(self, picture: RenderableType) -> None:
        """Draw with signals blocked: an interrupted draw would leave a broken screen behind."""
        with signals_wait():
            self._live.start()
            self._live.update(picture, refresh=True)


class Lines:
    """A line for each window, and one with the counts every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = 0
        self._next = 0.0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def say(self, sentence: str) -> None:
        """A line."""
        self._console.print(sentence, soft_wrap=True)

    def dashboard(self, url: str) -> None:
        """A line with the address."""
        self.say(f"Watch it live in a browser: {url}")

    def show(self, ledger: Ledger, state: str, share: float) -> None:
        """Print new windows and counts."""
        new = len(ledger.delays) - self._shown
        self._shown += new
        for each in reversed(ledger.latest(new) if new else []):
            what = f"{each.stream} {each.key} {_span(each)}, {each.count} messages"
            self.say(f"{ledger.seconds:5.1f} s  window  {what}, {each.group}: {each.said}")
        if ledger.seconds >= self._next:
            self._next = ledger.seconds + LINE_SECONDS
            windows = sum(count.windows for count in ledger.groups.values())
            counts = f"{ledger.total:,} messages ({ledger.rate:,.0f}/s), {windows:,} windows delivered"
            self.say(f"{ledger.seconds:5.1f} s  {state}: {counts}")


def _head(state: str, share: float, width: int, dashboard: str = "") -> RenderableType:
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    head.add_row(
        Text.assemble(("Queenspark", "bold"), "  a shop, watched through windows"),
        Text.assemble(
            (f"{dashboard}   ", "bold"),
            (state, "green" if state == "running" else "yellow"),
            ("   Ctrl-C to stop", "dim"),
        ),
    )
    bar = ProgressBar(total=1.0, completed=share, width=width, complete_style="green", finished_style="green")
    return Group(head, bar)


def _way(ledger: Ledger) -> RenderableType:
    """The path of the data, with a figure for each stage."""
    ready = ledger.first_window is not None
    sealed = sum(int(row["sealedWindows"]) for row in ledger.progress.values())
    opened = sum(int(row["openWindows"]) for row in ledger.progress.values())
    delivered = sum(count.windows for count in ledger.groups.values())
    table = Table.grid(expand=True, padding=(0, 1))
    for _ in range(7):
        table.add_column(justify="center")
    table.add_row(
        *(Text(name, style="dim") for name in ("producers", "", "log", "", "pipeline", "", "consumers")),
    )
    pipeline = f"{opened:,} open, {sealed:,} sealed" if ready else "starting Spark …"
    figures = (
        (f"{ledger.rate:,.0f} messages/s", "bold cyan"),
        (f"{ledger.total:,} messages", "bold cyan"),
        (pipeline, "bold magenta"),
        (f"{delivered:,} windows", "bold green"),
    )
    row: list[RenderableType] = []
    for text, style in figures:
        row += [*([Text("→", style="dim")] if row else []), Text(text, style=style)]
    table.add_row(*row)
    return table


def _streams(ledger: Ledger) -> RenderableType:
    table = Table(box=None, expand=True, pad_edge=False, header_style="dim")
    titles = ("stream", "group", "windows", "messages", "redelivered", "open", "watermark", "delay")
    for title in titles:
        table.add_column(title, justify="left" if title in titles[:2] else "right")
    delay = ledger.median_delay()
    shown = "" if delay is None else f"{delay:.1f} s"
    for stream, group in ((BASKETS, ANALYTICS), (BASKETS, MAILER), (SHOP, ANALYTICS)):
        count = ledger.groups.get((stream, group))
        progress = ledger.progress.get(stream, {})
        first = group == ANALYTICS
        table.add_row(
            Text(stream if first else "", style="bold"),
            group,
            f"{count.windows:,}" if count else "0",
            f"{count.messages:,}" if count else "0",
            Text(f"{count.failed:,}" if count and count.failed else "", style="yellow"),
            f"{progress.get('openWindows', 0):,}" if first else "",
            _clock(progress.get("watermark")) if first else "",
            shown,
        )
    return table


def _windows(ledger: Ledger, room: int) -> RenderableType:
    found = ledger.latest(room)
    if not found:
        text = f"Every {WINDOW_SECONDS} s a window for each of {len(CUSTOMERS)} customers, and one for all."
        return Padding(Text(text, style="dim"), (1, 0))
    table = Table(box=None, expand=True, pad_edge=False, show_header=False)
    for title in ("span", "stream", "key", "count", "group", "said"):
        table.add_column(
            justify="right" if title == "count" else "left",
            ratio=1 if title == "said" else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    for each in found:
        style = "green" if each.group == ANALYTICS else "blue"
        table.add_row(
            Text(_span(each), style="dim"),
            Text(each.stream),
            Text("" if each.stream == SHOP else each.key, style="bold"),
            Text(f"{each.count:,}"),
            Text(each.group, style=style),
            Text(each.said),
        )
    return table


def summary(console: Console, ledger: Ledger) -> None:
    """Print the summary and the next steps."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    queues = ", ".join(f"{count:,} {queue}" for queue, count in sorted(ledger.pushed.items()))
    facts.add_row("pushed", f"{ledger.total:,} messages" + (f" ({queues})" if queues else ""))
    for (stream, group), count in sorted(ledger.groups.items()):
        exact = (
            "each message exactly once" if count.messages == ledger.total else "the rest was still in flight"
        )
        again = f"; {count.failed} failed and were redelivered" if count.failed else ""
        facts.add_row(
            f"{stream} → {group}", f"{count.windows:,} windows, {count.messages:,} messages: {exact}{again}"
        )
    delay = ledger.median_delay()
    if delay is not None and ledger.first_window is not None:
        facts.add_row(
            "first window", f"{ledger.first_window:.0f} s after the first push, including the start of Spark"
        )
        facts.add_row(
            "delay", f"{delay:.1f} s from the end of a window and its grace to its delivery (median)"
        )
    console.print()
    console.print(facts)
    console.print()
    console.print(Text("Try next", style="bold"))
    for command, why in next_steps():
        console.print(Text.assemble("  ", (f"{command:<46}", "cyan"), why))
    console.print()


def _span(window: Delivered) -> str:
    return f"{_moment(window.start)} – {_moment(window.end)}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%H:%M:%S")


def _clock(text: Any) -> str:
    return "" if not text else _moment(datetime.fromisoformat(str(text)).timestamp())
