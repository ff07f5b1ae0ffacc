"""`make screenshots`: the pictures of README and docs, as docs/images/*.png.

With `ARGS=FOLDER` it takes every page in light and dark, on a desk and on a phone, into that folder. It runs
the shop of the tests, which needs no Spark.
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
from tests.wire.api import Api, responded

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
CLOSED_PAGES = {"login": "/login", "keys": "/keys", "audit": "/audit"}
"""Pages that only a broker with access control has; the first one is shown before the login."""

KEPT = {
    "overview-light-1440", "stream-dark-1440", "stream-light-1440", "jobs-light-1440", "system-dark-1440",
    "stream-light-390",
}  # fmt: skip
"""Those that README and docs show."""

_LIVE_SECONDS = 60.0


def main(folder: Path | None) -> None:
    """Take the pictures: all of them into a folder, or those of the docs into docs/images."""
    from tests.ui.conftest import Dashboard

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
                _shoot(dashboard.url, PAGES, scene, target, everything=folder is not None)
            finally:
                dashboard.stop()
            if folder is not None:
                _shoot_closed(postgres.url, Path(made), scene, target)
            scene.close()
        broker.stop()


def _shoot_closed(database_url: str, folder: Path, scene: Scene, target: Path) -> None:
    """Take the pictures of the pages of a broker with access control."""
    from tests.access.conftest import make_key
    from tests.ui.conftest import Dashboard

    _, root = make_key(database_url, "root", role="admin")
    broker = Broker(database_url, folder / "closed.log", access_control="true", stats_interval_seconds=1)
    try:
        with Api(broker.url, database_url) as api:
            api.http.headers["Authorization"] = f"Bearer {root}"
            administer(api)
            dashboard = Dashboard(broker, api, folder / "closed-ui.log")
            try:
                _shoot(dashboard.url, CLOSED_PAGES, scene, target, everything=True, key=root)
            finally:
                dashboard.stop()
    finally:
        broker.stop()


def administer(api: Api) -> None:
    """Make keys of every kind, and entries of the audit log."""
    keys = [
        responded(api.post("/api/v1/keys", wanted), 201)
        for wanted in (
            {"name": "shop backend", "scopes": ["queue:clicks:push", "queue:purchases:push"]},
            {"name": "reports", "role": "read-write", "scopes": ["stream:shop/*:consume"]},
            {"name": "visitors", "role": "read-only", "expiresAt": "2100-01-31T00:00:00Z"},
            {"name": "old importer", "role": "read-write"},
        )
    ]
    responded(api.delete(f"/api/v1/keys/{keys[-1]['id']}"), 200)
    api.configure("returns", namespace="shop")
    api.seek("ledger", "purchases", toEnd=True)
    assert api.delete("/api/v1/resources/queues/big_orders").status_code == 400  # of a job


def _shoot(
    url: str, pages: dict[str, str], scene: Scene, target: Path, *, everything: bool, key: str | None = None
) -> None:
    from tests.ui.conftest import chromium

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for width, height in ((1440, 900), (390, 844)):
                context = started.new_context(viewport={"width": width, "height": height})
                context.add_cookies([{"name": "theme", "value": theme, "url": url}])
                page = context.new_page()
                for name, path in pages.items():
                    file = f"{name}-{theme}-{width}"
                    if not everything and file not in KEPT:
                        continue
                    page.goto(url + path)
                    scene.step()
                    page.wait_for_timeout(1500)
                    page.screenshot(path=target / f"{file}.png", full_page=everything)
                    sys.stdout.write(f"{file}\n")
                    if name == "login":
                        page.get_by_label("API key or token").fill(key or "")
                        page.get_by_role("button", name="Log in").click()
                        page.locator("nav").wait_for()
                context.close()
        started.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
