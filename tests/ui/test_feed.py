"""Feeds: one request serves all viewers."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from queenspark.client import QueenError, Unreachable
from queenspark.ui.feed import Feed, Feeds
from queenspark.ui.frame import Live


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run in a thread of its own: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(work())).result()


def test_many_viewers_share_one_query_and_none_is_sent_without_viewers() -> None:
    asked = []

    async def fetch() -> int:
        asked.append(time.monotonic())
        return len(asked)

    async def view() -> None:
        feeds = Feeds()
        found = [feeds.get("question", fetch, every=0.05) for _ in range(10)]
        assert len(set(map(id, found))) == 1
        assert [await feed.first() for feed in found] == [1] * 10
        for _ in range(10):
            found[0].watch()
            await asyncio.sleep(0.02)
        assert 2 <= len(asked) <= 6
        feeds.close()

    run(view)


def test_the_page_that_wants_a_feed_most_often_sets_its_interval() -> None:
    asked = []

    async def fetch() -> int:
        asked.append(time.monotonic())
        return len(asked)

    async def view() -> None:
        feeds = Feeds()
        feeds.get("question", fetch, every=0.2)
        feeds.get("question", fetch, every=600.0)
        feed = feeds.get("question", fetch, every=0.1)
        await feed.first()
        for _ in range(200):
            feed.watch()
            await asyncio.sleep(0.01)
            if len(asked) > 2:
                break
        assert feed.every == 0.1
        assert len(asked) > 2
        feeds.close()

    run(view)


def test_a_feed_keeps_its_response_while_the_broker_is_away() -> None:
    responses: list[int | QueenError] = [1, Unreachable("gone", maybe_done=False), 2]

    async def fetch() -> int:
        response = responses.pop(0)
        if isinstance(response, QueenError):
            raise response
        return response

    async def view() -> None:
        feed = Feeds().get("question", fetch)
        for value, is_gone in ((1, False), (1, True), (2, False)):
            await feed.refresh()
            assert (feed.value, feed.gone_since is not None) == (value, is_gone)
        assert feed.error is None

    run(view)


def test_an_unexpected_error_is_shown_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def fetch() -> int:
        raise KeyError("total")

    async def view() -> None:
        feed = Feed(fetch, every=0.05)
        await feed.first(within=5)
        for _ in range(3):
            await feed.refresh()
        assert "KeyError: 'total'" in str(feed.error)
        assert (feed.version, feed.gone_since) == (1, None)

    run(view)
    assert len(caplog.records) == 1


def test_a_part_that_cannot_be_drawn_has_an_error_until_it_can(caplog: pytest.LogCaptureFixture) -> None:
    values = [{}, {"other": 1}, {"total": 2}]
    drawn: list[int] = []

    async def fetch() -> dict[str, int]:
        return values.pop(0)

    async def view() -> None:
        feed = Feed(fetch, every=1)
        live = Live(lambda: feed, lambda value: drawn.append(value["total"]))
        for expected in ("KeyError: 'total'", "KeyError: 'total'", ""):
            await live.refresh()
            assert expected in str(live.error or "")
        assert live.error is None

    run(view)
    assert drawn == [2]
    assert len(caplog.records) == 1
