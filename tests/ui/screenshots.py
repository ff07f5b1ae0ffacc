"""`make screenshots`: every page in light and dark, on a desk and on a phone, as docs/images/*.png.

It runs the shop of the tests, which needs no Spark. With `ARGS=FOLDER` the pictures go elsewhere.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from queenspark.store.migrate import migrate
from tests.broker_process import Broker
from tests.postgres_servers import temporary_postgres
from tests.ui.scene import Scene
from tests.wire.api import Api

PAGES = {
    "overview": "/",
    "streams": "/streams",
    "stream": "/stream?namespace=shop&name=shopping",
    "queues": "/queues",
    "queue": "/queue?name=purchases",
    "groups": "/groups",
    "group": "/group?name=fraud",
    "dead-letters": "/dead-letters",
    "jobs": "/jobs",
    "job": "/job?name=minutes",
    "sql": "/sql",
    "system": "/system",
}
KEPT = {
    "overview-light-1440", "stream-dark-1440", "stream-light-1440", "jobs-light-1440", "system-dark-1440",
    "stream-light-390",
}  # fmt: skip
"""Those that README and docs show."""

_LIVE_SECONDS = 60.0


def main(folder: Path | None) -> None:
    """Take the pictures: all of them into a folder, or those of the docs into docs/images."""
    from tests.ui.conftest import Dashboard, chromium

    target = folder or Path(__file__).parents[2] / "docs" / "images"
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as made, temporary_postgres(durable=False) as postgres:
        migrate(postgres.url)
        broker = Broker(postgres.url, Path(made) / "broker.log", stats_interval_seconds=1)
        with Api(broker.url, postgres.url) as api:
            scene = Scene(api, postgres.url)
            scene.fill()
            dashboard = Dashboard(broker, api, Path(made) / "ui.log")
            try:
                end = time.monotonic() + _LIVE_SECONDS
                while time.monotonic() < end:
                    scene.step()
                    time.sleep(1)
                _shoot(dashboard.url, scene, target, chromium(), everything=folder is not None)
            finally:
                dashboard.stop()
                scene.close()
        broker.stop()


def _shoot(url: str, scene: Scene, target: Path, browser: str | None, *, everything: bool) -> None:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for width, height in ((1440, 900), (390, 844)):
                context = started.new_context(viewport={"width": width, "height": height})
                context.add_cookies([{"name": "theme", "value": theme, "url": url}])
                page = context.new_page()
                for name, path in PAGES.items():
                    file = f"{name}-{theme}-{width}"
                    if not everything and file not in KEPT:
                        continue
                    page.goto(url + path)
                    scene.step()
                    page.wait_for_timeout(1500)
                    page.screenshot(path=target / f"{file}.png", full_page=everything)
                    sys.stdout.write(f"{file}\n")
                context.close()
        started.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
