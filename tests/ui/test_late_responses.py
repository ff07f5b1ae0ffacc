"""Pages that were opened while the broker was stuck fill themselves when it continues."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from tests.ui.conftest import Dashboard, Viewer
from tests.ui.screenshots import PAGES

Check = Callable[[Viewer], None]


def texts(*expected: str) -> Check:
    def check(viewer: Viewer) -> None:
        for text in expected:
            viewer.sees(text)

    return check


def stream_is_complete(viewer: Viewer) -> None:
    viewer.wait_for_states(lambda seen: seen.get("acked"))
    texts("tumbling, 10 s, over clicks", "reports", "Seek…")(viewer)


def queue_is_complete(viewer: Viewer) -> None:
    texts("user39@example.org")(viewer)
    viewer.page.get_by_role("link", name="mailer").wait_for()


def sql_is_complete(viewer: Viewer) -> None:
    viewer.page.get_by_role("button", name="purchases", exact=True).wait_for()


COMPLETE: dict[str, Check] = {
    "overview": texts("Job risky has failed", " connections", "behind"),
    "streams": texts("shopping", "over clicks"),
    "stream": stream_is_complete,
    "queues": texts("purchases"),
    "queue": queue_is_complete,
    "groups": texts("mailer"),
    "group": texts("shopping", "Seek…", "anna"),
    "dead-letters": texts("mailbox does not exist", " dead letters"),
    "jobs": texts("big_orders", "division by zero"),
    "job": texts("WINDOW TUMBLING", "total", "Why the next window is not sealed yet"),
    "sql": sql_is_complete,
    "system": texts("QUEENSPARK_DATABASE_URL", "set, not shown", "standby", "queenspark broker"),
}
"""The texts that each page shows only after all of its responses have arrived."""


def test_pages_opened_while_the_broker_is_stuck_fill_themselves(
    dashboard: Dashboard, context: BrowserContext, tmp_path: Path
) -> None:
    fresh = Dashboard(dashboard.broker, dashboard.api, tmp_path / "ui.log")  # it has no responses yet
    try:
        with fresh.broker.stuck():
            viewers = {
                name: _open(fresh, context, path)
                for name, path in {**PAGES, "queue": "/queue?name=emails"}.items()
            }
        for name, viewer in viewers.items():
            viewer.page.bring_to_front()
            COMPLETE[name](viewer)
            viewer.page.locator(".qs-banner").wait_for(state="hidden")
            assert viewer.page.locator(".qs-error").get_by_text("does not respond").count() == 0, name
            assert viewer.page.evaluate("window.isTheSamePage"), name
            assert viewer.troubles == [], name
    finally:
        fresh.stop()


def _open(dashboard: Dashboard, context: BrowserContext, path: str) -> Viewer:
    viewer = Viewer(dashboard, context.new_page())
    _mark(viewer.open(path))
    return viewer


def _mark(page: Page) -> None:
    """Mark a page, so that a reload would be noticed."""
    page.evaluate("window.isTheSamePage = true")


def test_a_login_page_opened_while_the_broker_is_stuck_continues_by_itself(
    dashboard: Dashboard, context: BrowserContext, tmp_path: Path
) -> None:
    with dashboard.broker.stuck():
        fresh = Dashboard(dashboard.broker, dashboard.api, tmp_path / "ui.log")
        viewer = Viewer(fresh, context.new_page())
        viewer.open("/login?next=%2Fqueues")
        viewer.sees("does not respond. Retrying.")
    try:
        viewer.page.wait_for_url("**/queues")  # this broker requires no login
        viewer.sees("purchases")
        assert viewer.troubles == []
    finally:
        fresh.stop()
