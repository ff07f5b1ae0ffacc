"""Programs that consume a stream, to be interrupted and killed.

`python -m tests.client.programs KIND URL STREAM SECONDS` prints a line for each delivered window, one when it
has noticed the first signal, and one when it is done, SECONDS later.
"""

import asyncio
import signal
import sys
import threading
import time

from queenspark import AsyncQueen, AsyncWindow, Queen, Window

MOST = 60  # seconds until a signal

# A shell lets background processes ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def got(window: Window | AsyncWindow) -> threading.Event:
    """Say so, and watch for the end of the client's interest in signals, which the event is about."""
    before = signal.getsignal(signal.SIGINT)
    noticed = threading.Event()
    say(f"got {window.id}")

    def watch() -> None:
        while signal.getsignal(signal.SIGINT) == before:
            time.sleep(0.01)
        say("noticed")
        noticed.set()

    threading.Thread(target=watch, daemon=True).start()
    return noticed


def run_sync(url: str, stream: str, seconds: float, *, workers: int) -> None:
    def handler(window: Window) -> None:
        got(window).wait(MOST)
        time.sleep(seconds)
        say(f"did {window.id}")

    with Queen(url) as queen:
        queen.consumer(stream, "g").process(handler, concurrency=workers)
    say("end")


def run_quickly(url: str, stream: str, seconds: float) -> None:
    """Handle windows as they come, so that some are fetched ahead and some acks wait."""

    def handler(window: Window) -> None:
        time.sleep(seconds)
        say(f"did {window.key}")

    with Queen(url) as queen:
        queen.consumer(stream, "g").process(handler, concurrency=2)


async def run_async(url: str, stream: str, seconds: float, *, plain: bool) -> None:
    async def handler(window: AsyncWindow) -> None:
        await asyncio.to_thread(got(window).wait, MOST)
        await asyncio.sleep(seconds)
        say(f"did {window.id}")

    def in_a_thread(window: AsyncWindow) -> None:
        got(window).wait(MOST)
        time.sleep(seconds)
        say(f"did {window.id}")

    async with AsyncQueen(url) as queen:
        await asyncio.gather(
            queen.consumer(stream, "g").process(in_a_thread if plain else handler),
            queen.consumer(stream, "other").process(lambda window: None),
        )
    say("end")


if __name__ == "__main__":
    kind, url, stream, seconds = sys.argv[1:]
    if kind == "quick":
        run_quickly(url, stream, float(seconds))
    elif kind in ("sync", "sync-threads"):
        run_sync(url, stream, float(seconds), workers=1 if kind == "sync" else 2)
    else:
        asyncio.run(run_async(url, stream, float(seconds), plain=kind == "async-plain"))
