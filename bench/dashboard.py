"""`python -m bench.dashboard`: the dashboard over 1,000 streams, 100,000 keys and a million windows.

Reports the first paint of every page on loopback, the time until its data is shown, the processor time of the
process with one viewer, and its memory with ten. Needs Chromium, and about two minutes on two quiet cores.
"""

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from queenspark.store.migrate import migrate
from tests.broker_process import Broker
from tests.database import connect
from tests.postgres_servers import temporary_postgres
from tests.ui.conftest import Dashboard, chromium
from tests.ui.scene import Scene
from tests.ui.screenshots import PAGES
from tests.wire.api import Api

STREAMS = 1000
KEYS = 100_000
WINDOWS = 1_000_000
SECONDS = 20.0
VIEWERS = 10
_TICKS = os.sysconf("SC_CLK_TCK")
_ROW = "tbody tr:not(.empty)"
FILLED = {
    "overview": ".qs-attention > *",
    "stream": ".qs-timeline canvas[data-states]",
    "job": ".qs-code",
    "sql": ".qs-badge.plain",
}
"""An element that a page has when its data is there; a row of a table on the other pages."""

FILL = """
    INSERT INTO queenspark.queues (name) SELECT 'windows:load/s' || n FROM generate_series(1, {streams}) n;
    INSERT INTO queenspark.streams (namespace, name, queue_id, partitioned, lease_timeout_ms, version)
        SELECT 'load', substr(q.name, 14), q.id, true, 60000, 1 FROM queenspark.queues q
        WHERE q.name LIKE 'windows:load/%';
    INSERT INTO queenspark.definitions (stream_id, version, body)
        SELECT s.id, 1, d.body || jsonb_build_object('name', s.name, 'namespace', 'load')
        FROM queenspark.streams s,
             (SELECT body FROM queenspark.definitions WHERE body IS NOT NULL ORDER BY seq LIMIT 1) d
        WHERE s.namespace = 'load';
    INSERT INTO queenspark.stream_stats (stream_id, version, bucket, watermark_us, records, windows)
        SELECT s.id, 1, b, 0, 100, 10 FROM queenspark.streams s, generate_series(0, 3) b
        WHERE s.namespace = 'load';
    INSERT INTO queenspark.stream_rates (stream_id, arriving, processed, sealed, late, backpressure)
        SELECT id, 1, 1, 1, 0, 1 FROM queenspark.streams WHERE namespace = 'load';
    INSERT INTO queenspark.partitions (queue_id, name)
        SELECT q.id, 'k' || n FROM queenspark.queues q, generate_series(1, {keys}) n
        WHERE q.name = 'windows:load/s1';
    INSERT INTO queenspark.messages
        (txid, id, partition_id, created_at, queue_id, transaction_id, payload, window_end)
        SELECT 1 + n / 1000, -n, p.id, now(), p.queue_id, 'w' || n, json_build_object(
                   'id', 'w' || n, 'stream', s.id, 'version', 1, 'key', p.name, 'start', e.us - 10000000,
                   'end', e.us, 'count', 5, 'revision', 1, 'sources', '[]'::json)::text,
               timestamptz 'epoch' + e.us * interval '1 microsecond'
        FROM generate_series(1, {windows}) n
        JOIN (SELECT id, name, queue_id, row_number() OVER (ORDER BY id) AS k FROM queenspark.partitions
              WHERE queue_id = (SELECT id FROM queenspark.queues WHERE name = 'windows:load/s1')) p
            ON p.k = 1 + n % {keys}
        JOIN queenspark.streams s ON s.queue_id = p.queue_id
        CROSS JOIN LATERAL (
            SELECT ((extract(epoch FROM now())::bigint / 10) * 10 - (n / {keys}) * 10) * 1000000 AS us) e;
    INSERT INTO queenspark.groups (queue_id, name, start_txid, start_id, seen_txid, seen_id)
        SELECT id, 'g', 0, 0, 0, 0 FROM queenspark.queues WHERE name LIKE 'windows:load/%';
    INSERT INTO queenspark.places (group_id, partition_id, cursor_txid, cursor_id, end_txid, end_id)
        SELECT g.id, p.id, 500, 0, 500, 0 FROM queenspark.groups g
        JOIN queenspark.partitions p ON p.queue_id = g.queue_id
        WHERE g.queue_id = (SELECT id FROM queenspark.queues WHERE name = 'windows:load/s1');
    VACUUM ANALYZE;
"""


def main() -> None:
    """Fill a database, open its pages, and report the cost."""
    with TemporaryDirectory() as made, temporary_postgres(durable=False) as postgres, ExitStack() as running:
        migrate(postgres.url)
        broker = Broker(postgres.url, Path(made) / "broker.log")
        running.callback(broker.stop)
        api = running.enter_context(Api(broker.url, postgres.url))
        scene = Scene(api, postgres.url)
        running.callback(scene.close)
        scene.fill()
        with connect(postgres.url) as connection:
            for statement in FILL.format(streams=STREAMS, keys=KEYS, windows=WINDOWS).split(";\n"):
                if statement.strip():
                    connection.execute(statement)
        _say(f"filled: {STREAMS:,} streams, {KEYS:,} keys, {WINDOWS:,} windows")
        dashboard = Dashboard(broker, api, Path(made) / "ui.log")
        running.callback(dashboard.stop)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            _paints(browser, dashboard)
            _load(browser, dashboard, broker)
            browser.close()


def _paints(browser: Browser, dashboard: Dashboard) -> None:
    pages = {**PAGES, "stream": "/stream?namespace=load&name=s1"}
    page = browser.new_context().new_page()
    page.goto(dashboard.url)  # the scripts are in the browser's cache from here on
    for name, path in pages.items():
        measured = [_paint(page, dashboard.url + path, FILLED.get(name, _ROW)) for _ in range(3)]
        paint, data = (sorted(each)[1] * 1000 for each in zip(*measured, strict=True))
        _say(f"first paint of {name:14} {paint:6.0f} ms, data after {data:6.0f} ms")
    page.context.close()
    for name in ("overview", "streams", "sql"):
        page = browser.new_context().new_page()  # with an empty cache
        paint, data = (
            1000 * each for each in _paint(page, dashboard.url + pages[name], FILLED.get(name, _ROW))
        )
        _say(f"first visit to {name:14} {paint:6.0f} ms, data after {data:6.0f} ms")
        page.context.close()


def _paint(page: Page, url: str, filled: str) -> tuple[float, float]:
    """Seconds until the page is painted, and until an element with its data is there."""
    begun = time.monotonic()
    page.goto(url, wait_until="commit")
    page.locator("h1").first.wait_for()
    painted = time.monotonic() - begun
    page.locator(filled).first.wait_for()
    return painted, time.monotonic() - begun


def _load(browser: Browser, dashboard: Dashboard, broker: Broker) -> None:
    pid = dashboard.process.pid
    for name, path in (
        ("overview", "/"),
        ("streams", "/streams"),
        ("stream", "/stream?namespace=load&name=s1"),
    ):
        page = browser.new_context().new_page()
        page.goto(dashboard.url + path)
        page.wait_for_timeout(3000)
        before, of_broker = _cpu(pid), _cpu(broker.pid)
        page.wait_for_timeout(SECONDS * 1000)
        _say(
            f"one viewer of {name:10} dashboard {(_cpu(pid) - before) / SECONDS:6.1%} of a core,"
            f" broker {(_cpu(broker.pid) - of_broker) / SECONDS:6.1%}"
        )
        page.context.close()
    pages = [browser.new_context().new_page() for _ in range(VIEWERS)]
    paths = list(PAGES.values())
    for number, page in enumerate(pages):
        page.goto(dashboard.url + (paths[number % len(paths)]))
    before = _cpu(pid)
    pages[0].wait_for_timeout(SECONDS * 1000)
    used = (_cpu(pid) - before) / SECONDS
    _say(f"{VIEWERS} viewers of different pages: {used:.1%} of a core, {_memory(pid) / 1e6:.0f} MB")
    for page in pages:
        page.goto(dashboard.url + "/stream?namespace=load&name=s1")
    before = _cpu(pid)
    pages[0].wait_for_timeout(SECONDS * 1000)
    used = (_cpu(pid) - before) / SECONDS
    _say(f"{VIEWERS} viewers of one stream: {used:.1%} of a core, {_memory(pid) / 1e6:.0f} MB")


def _cpu(pid: int) -> float:
    """The processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int) -> int:
    """The memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
