"""One system, one dashboard and one browser for all tests of the folder; no Spark."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from queenspark.store.migrate import migrate
from tests.broker_process import Broker, clean_environment, free_port
from tests.postgres_servers import temporary_postgres
from tests.ui.scene import Scene
from tests.wire.api import Api
from tests.wire.deadline import eventually

LONG_ENOUGH_MS = 20_000
NO_BROWSER = "no Chromium is installed: apt-get install chromium-headless-shell"
#: The shell draws no window, and takes a fraction of the processor time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Dashboard:
    """`queenspark ui` with its broker."""

    def __init__(self, broker: Broker, api: Api, log_file: Path, **settings: Any) -> None:
        self.broker = broker
        self.api = api
        self.log_file = log_file
        port = free_port()
        self.url = f"{'https' if 'ui_tls_key' in settings else 'http'}://127.0.0.1:{port}"
        command = [sys.executable, "-m", "queenspark", "ui", "--broker", broker.url, "--port", str(port)]
        with log_file.open("ab") as log:
            environment = clean_environment(**settings)
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            eventually(self._responds, within=60)
        except BaseException:
            self.stop()
            raise

    def _responds(self) -> bool:
        try:
            # Cache no responses of the broker: a test may need the first one.
            return httpx2.get(f"{self.url}/login", timeout=5, verify=False).status_code in (200, 303)
        except httpx2.TransportError:
            assert self.process.poll() is None, self.log_file.read_text()
            return False

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(20)


def chromium() -> str | None:
    """The browser of this machine, if it has one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def shop_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker of a small shop."""
    if chromium() is None:
        pytest.skip(NO_BROWSER)
    with temporary_postgres(durable=False) as postgres:
        migrate(postgres.url)
        log_file = tmp_path_factory.mktemp("shop") / "broker.log"
        broker = Broker(postgres.url, log_file, stats_interval_seconds=1)
        yield broker
        broker.stop()


@pytest.fixture(scope="session")
def scene(shop_broker: Broker) -> Iterator[Scene]:
    """The small shop."""
    with Api(shop_broker.url, shop_broker.database_url) as api:
        scene = Scene(api, shop_broker.database_url)
        scene.fill()
        scene.step()
        yield scene
        scene.close()


@pytest.fixture(scope="session")
def dashboard(
    shop_broker: Broker, scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Dashboard]:
    """The dashboard of the small shop."""
    started = Dashboard(shop_broker, scene.api, tmp_path_factory.mktemp("dashboard") / "ui.log")
    yield started
    started.stop()


@pytest.fixture(scope="package")  # while it runs there is an event loop, and tests elsewhere need their own
def browser() -> Iterator[Browser]:
    """A real browser."""
    if chromium() is None:
        pytest.skip(NO_BROWSER)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()


class Viewer:
    """A user of the dashboard; `troubles` are errors that the browser saw."""

    def __init__(self, dashboard: Dashboard, page: Page) -> None:
        self.dashboard = dashboard
        self.page = page
        self.troubles: list[str] = []
        page.set_default_timeout(LONG_ENOUGH_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", lambda request: self._request(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.troubles.append(message.text)

    def _request(self, url: str) -> None:
        own = (self.dashboard.url, self.dashboard.url.replace("http", "ws"), "data:", "blob:")
        if not url.startswith(own):
            self.troubles.append(f"a request to {url}")

    def open(self, path: str) -> Page:
        """Go to a page of the dashboard."""
        self.page.goto(self.dashboard.url + path)
        self.page.locator("h1").first.wait_for()
        return self.page

    def click(self, text: str, *, exact: bool = True) -> None:
        """Click on a button."""
        self.page.get_by_role("button", name=text, exact=exact).first.click()

    def confirm(self, verb: str) -> None:
        """Say yes to the question."""
        self.page.locator(".qs-dialog").get_by_role("button", name=verb, exact=True).click()

    def sees(self, text: str) -> None:
        """Wait until a text is there."""
        self.page.get_by_text(text).first.wait_for()

    def states(self) -> dict[str, int]:
        """How many windows of each state the timeline shows."""
        text = self.page.locator(".qs-timeline canvas").get_attribute("data-states")
        found: dict[str, int] = json.loads(text or "{}")
        return found

    def wait_for_states(self, is_so: Callable[[dict[str, int]], Any], within: float = 20.0) -> None:
        """Wait until the timeline shows certain states."""
        seen: dict[str, int] = {}

        def check() -> bool:
            seen.clear()
            seen.update(self.states())
            self.page.wait_for_timeout(50)
            return bool(is_so(seen))

        try:
            eventually(check, within=within)
        except AssertionError as error:
            raise AssertionError(f"the timeline shows {seen}") from error


@pytest.fixture(scope="package")
def shared_context(browser: Browser) -> Iterator[BrowserContext]:
    """A context whose cache already has the scripts of the dashboard; loading them takes seconds."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context
    context.close()


@pytest.fixture
def context(shared_context: BrowserContext) -> Iterator[BrowserContext]:
    """The shared context, without pages and cookies of other tests."""
    yield shared_context
    for page in shared_context.pages:
        page.close()
    shared_context.clear_cookies()


@pytest.fixture
def viewer(dashboard: Dashboard, context: BrowserContext) -> Iterator[Viewer]:
    """A viewer of the test's own; the browser must not see any error."""
    viewer = Viewer(dashboard, context.new_page())
    yield viewer
    assert viewer.troubles == []
