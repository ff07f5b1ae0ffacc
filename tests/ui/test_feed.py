"""Feeds: one request serves all viewers."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from queenspark.client import QueenError, Unreachable
from queenspark.ui.feed import Feeds


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run in a thread of its own: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(work())).result()


def test_many_viewers_ask_once_and_nobody_asks_when_nobody_looks() -> None:
    asked = []

    async def fetch() -> int:
        asked.append(time.monotonic())
        return len(asked)

    async def look() -> None:
        feeds = Feeds()
        found = [feeds.get("question", fetch, every=0.05) for _ in range(10)]
        assert len(set(map(id, found))) == 1
        assert [await feed.first() for feed in found] == [1] * 10
        for _ in range(10):
            found[0].watch()
            await asyncio.sleep(0.02)
        assert 2 <= len(asked) <= 6
        feeds.close()

    run(look)


def test_a_feed_keeps_its_answer_while_the_broker_is_away() -> None:
    answers: list[int | QueenError] = [1, Unreachable("gone", maybe_done=False), 2]

    async def fetch() -> int:
        answer = answers.pop(0)
        if isinstance(answer, QueenError):
            raise answer
        return answer

    async def look() -> None:
        feed = Feeds().get("question", fetch)
        for value, is_gone in ((1, False), (1, True), (2, False)):
            await feed.refresh()
            assert (feed.value, feed.gone_since is not None) == (value, is_gone)
        assert feed.error is None

    run(look)
