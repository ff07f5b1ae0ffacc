"""Every page shows live data, on a desk and on a phone, in light and dark, without an error."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.broker_process import Broker
from tests.ui.conftest import Dashboard, Viewer
from tests.ui.scene import Scene
from tests.ui.screenshots import PAGES
from tests.wire.api import Api
from tests.wire.deadline import eventually

SEEN = {
    "overview": ("Needs attention", "Job risky has failed"),
    "streams": ("shopping", "tumbling, 10 s", "over clicks"),
    "stream": ("Timeline", "reports", "fraud", "sealed, waiting"),
    "queues": ("purchases", "emails"),
    "queue": ("Push a message", "amount"),
    "groups": ("reports", "mailer"),
    "group": ("Leases", "Partitions", "fraud-worker"),
    "dead-letters": ("mailbox does not exist",),
    "jobs": ("big_orders", "paused", "division by zero"),
    "job": ("Statement", "TUMBLING", "total"),
    "sql": ("Statements", "History"),
    "system": (
        "Pipelines",
        "leading",
        "Spark state",
        "QUEENSPARK_DATABASE_URL",
        "set, not shown",
        "queenspark broker",
    ),
}


FLOWING = ("overview", "stream", "queue")
"""Pages that are open while the shop runs; a step takes a second."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_the_live_system(viewer: Viewer, scene: Scene, name: str) -> None:
    viewer.open(PAGES[name])
    if name in FLOWING:
        scene.step()
    for text in SEEN[name]:
        viewer.sees(text)
    assert "postgresql://" not in viewer.page.content()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_a_phone(dashboard: Dashboard, browser: Browser, theme: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=theme)  # type: ignore[arg-type]
    viewer = Viewer(dashboard, context.new_page())
    for name in ("overview", "stream", "queue"):
        page = viewer.open(PAGES[name])
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        assert page.evaluate("document.body.classList.contains('body--dark')") == (theme == "dark")
    context.close()
    assert viewer.troubles == []


def test_light_and_dark_are_switched_and_remembered(viewer: Viewer) -> None:
    page = viewer.open("/")
    page.get_by_role("button", name="Toggle dark mode").click()
    page.wait_for_function("document.body.classList.contains('body--dark')")
    page.wait_for_function("document.cookie.includes('theme=dark')")
    viewer.open("/system")
    page.wait_for_function("document.body.classList.contains('body--dark')")


def test_pages_say_when_an_object_does_not_exist(viewer: Viewer) -> None:
    for path, text in (
        ("/stream?name=missing", "Stream not found"),
        ("/queue?name=missing", "queue missing does not exist"),
        ("/job?name=missing", "job missing does not exist"),
    ):
        viewer.open(path)
        viewer.sees(text)


def test_lists_of_an_empty_system_say_how_to_begin(
    broker: Callable[[], Broker], context: BrowserContext, tmp_path: Path
) -> None:
    started = broker()
    with Api(started.url) as api:
        empty = Dashboard(started, api, tmp_path / "ui.log")
        try:
            viewer = Viewer(empty, context.new_page())
            for path, text in (
                ("/queues", "No queues yet"),
                ("/streams", "No streams yet"),
                ("/jobs", "No jobs yet"),
                ("/groups", "No groups yet"),
                ("/dead-letters", "No dead letters."),
                ("/sql", "No queues yet"),
            ):
                viewer.open(path)
                viewer.sees(text)
                assert viewer.page.locator(".qs-error").count() == 0, path
            assert viewer.troubles == []
        finally:
            empty.stop()


def test_lists_are_searched_and_sorted(viewer: Viewer) -> None:
    page = viewer.open("/streams")
    names = page.locator("tbody td:first-child a")
    for column in ("Lag", "Sealed"):
        page.get_by_role("button", name=column).click()
        page.get_by_role("button", name=column).click()
        page.locator("th[aria-sort=descending]", has_text=column).wait_for()
        assert page.locator(".qs-error").count() == 0
    eventually(lambda: names.all_inner_texts()[:1] == ["shopping"])
    page.get_by_label("Search streams").fill("tot")
    eventually(lambda: names.all_inner_texts() == ["totals"])
    page.get_by_label("Search streams").fill("nothing like it")
    viewer.sees("No stream matches.")


@pytest.mark.parametrize("peak", [99_000, 100_000, 101_000])
def test_a_chart_is_drawn_whatever_its_peak(viewer: Viewer, scene: Scene, peak: int) -> None:
    scene.shopping.run(
        "INSERT INTO queenspark.samples SELECT date_bin('5 seconds', clock_timestamp() - interval '5 min',"
        " 'epoch'), 'peak', 0, 0, 0, 0, 0, 0, 0, %s, 0, 0, 0, 0, 0",
        peak,
    )
    try:
        page = viewer.open("/")
        chart = page.locator("canvas[aria-label^=unacked]")
        # Ink above the axis: without it, only the times below are drawn.
        ink = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height / 2).data
            .some((value, n) => n % 4 === 3 && value > 0)"""
        page.wait_for_function("document.querySelector('.qs-legend b').innerText !== '–'")
        eventually(lambda: chart.evaluate(ink))
    finally:
        scene.shopping.run("DELETE FROM queenspark.samples WHERE broker = 'peak'")


def test_queues_and_groups_are_sorted_by_their_rates(viewer: Viewer) -> None:
    api = viewer.dashboard.api
    for name, count in (("rated-a", 20), ("rated-b", 60)):
        api.push(name, *range(count))
        api.drain(name, count, consumerGroup=f"{name}-group")
    for path, field, columns in (
        ("/queues", "Search queues", ("Pushed/s", "Popped/s", "Acked/s")),
        ("/groups", "Search groups", ("Popped/s", "Acked/s")),
    ):
        page = viewer.open(path)
        page.get_by_label(field).fill("rated-")
        names = page.locator("tbody td:first-child a")
        eventually(lambda names=names: names.count() == 2)  # type: ignore[misc]
        for column in columns:
            number = page.locator(f"td[data-label='{column}']").first
            page.get_by_role("button", name=column).click()
            page.get_by_role("button", name=column).click()
            page.locator("th[aria-sort=descending]", has_text=column).wait_for()
            eventually(
                lambda names=names, number=number: (  # type: ignore[misc]
                    names.all_inner_texts()[0].startswith("rated-b") and float(number.inner_text()) > 0
                ),
                within=20,
            )


def test_a_page_is_updated_while_it_is_open(viewer: Viewer) -> None:
    page = viewer.open("/queue?name=renewed")
    viewer.dashboard.api.push("renewed", {"number": 1})
    viewer.sees('{"number":1}')
    viewer.dashboard.api.push("renewed", {"number": 2})
    viewer.sees('{"number":2}')
    assert page.locator(".qs-error").count() == 0
