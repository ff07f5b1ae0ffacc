"""The dashboard of a running system: windows that the pipeline seals, data that flows, a broker that dies."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import BrowserContext

from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import Stream, System
from tests.ui.conftest import Dashboard, Viewer
from tests.wire.api import Api
from tests.wire.deadline import eventually
from tests.wire.sql import Sql

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

WINDOW_MS = 10_000
WITHIN = 120.0
PAGES = {
    "/": ("Pushed", "Messages"),
    "/streams": ("flowing", "tumbling, 2.0 s"),
    "/stream?namespace=tests&name=flowing": ("Timeline", "sealed, waiting", "Seek…"),
    "/queues": ("flow",),
    "/queue?name=flow": ('{"n":', "readers"),
    "/groups": ("readers", "g"),
    "/group?name=readers": ("Leases", "Partitions", "flow"),
    "/dead-letters": ("rejected by the test",),
    "/jobs": ("evens", "running"),
    "/job?name=evens": ("Statement", "Next window"),
    "/sql": ("Statements", "flow"),
    "/system": ("leading", "QUEENSPARK_DATABASE_URL", "set, not shown"),
}
"""Each page with texts that it shows when it is complete."""


class Flow(threading.Thread):
    """Pushes, pops and acks until it is stopped."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self._api = Api(broker.url)
        self._ends = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        number = 0
        try:
            while not self._ends.wait(0.1):
                number += 1
                self._api.push("flow", {"n": number}, partition=f"p{number % 5}")
                popped = self._api.pop("flow", consumerGroup="readers", batch=5)
                if popped.status_code == 200:
                    self._api.complete(popped.json()["messages"], "readers")
        except BaseException as error:
            self.error = error
            raise

    def stop(self) -> None:
        """End it, and raise its error."""
        self._ends.set()
        self.join()
        self._api.http.close()
        assert self.error is None


class Running(System):
    """A broker, a pipeline and a dashboard."""

    def __init__(self, api: Api, pipeline: PipelineProcess, broker: Broker, dashboard: Dashboard) -> None:
        super().__init__(api, broker.database_url, pipeline)
        self.broker = broker
        self.dashboard = dashboard


@pytest.fixture(scope="module")
def running(system_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("running")
    with system_postgres.database() as url, ExitStack() as stack:
        broker = Broker(url, folder / "broker.log", stats_interval_seconds=1)
        stack.callback(broker.stop)
        pipeline = PipelineProcess(url, folder / "pipeline")
        pipeline.start()
        stack.callback(pipeline.kill)
        pipeline.wait_until_leading()
        api = stack.enter_context(Api(broker.url, url))
        dashboard = Dashboard(broker, api, folder / "ui.log")
        stack.callback(dashboard.stop)
        yield Running(api, pipeline, broker, dashboard)


@pytest.fixture
def viewer(running: Running, context: BrowserContext) -> Iterator[Viewer]:
    """A viewer of the running system; the browser must not see any error."""
    viewer = Viewer(running.dashboard, context.new_page())
    yield viewer
    assert viewer.troubles == []


class Watched:
    """A stream over event times of one key, so that only its records move its clock."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.begin_ms = int(time.time() * 1000) // WINDOW_MS * WINDOW_MS - 6 * WINDOW_MS
        self.stream: Stream = running.define(
            "tumbling", name="watched", grace_ms=1000, event_time="data.at", idle_timeout_ms=600_000,
            window_duration_ms=WINDOW_MS,
        )  # fmt: skip

    def push(self, after_seconds: float) -> None:
        """Push a record of a time after the begin."""
        record = {"at": self.begin_ms + int(after_seconds * 1000)}
        self._running.api.push(self.stream.queues[0], record, partition="anna")


def test_windows_of_the_pipeline_are_seen_in_every_state_and_a_broker_dies(
    viewer: Viewer, running: Running
) -> None:
    watched = Watched(running)
    assert running.poll(watched.stream, timeout=0) is None  # the group begins here
    page = viewer.open("/stream?namespace=tests&name=watched")
    page.evaluate("window.isTheSamePage = true")

    def shows(**states: int) -> None:
        viewer.wait_for_states(lambda seen: seen == states, within=WITHIN)

    watched.push(1)
    shows(open=1)
    watched.push(15)
    shows(waiting=1, open=1)
    window = running.poll(watched.stream)
    assert window is not None
    shows(leased=1, open=1)
    running.ack(window)
    shows(acked=1, open=1)
    watched.push(2)  # late: its window is sealed
    shows(waiting=1, open=1)
    page.locator(".qs-timeline canvas").focus()
    page.keyboard.press("[")
    page.keyboard.press("[")
    page.locator(".qs-tip").get_by_text("revision 2").wait_for()
    revised = running.poll(watched.stream)
    assert revised is not None
    assert (revised["id"], revised["revision"]) == (window["id"], 2)
    running.api.ack(revised, "dlq", consumerGroup="g", error="rejected by the test")
    shows(dead=1, open=1)

    running.broker.kill()
    try:
        page.locator(".qs-banner").wait_for()
        assert viewer.states() == {"dead": 1, "open": 1}
    finally:
        running.broker.start()
    page.locator(".qs-banner").wait_for(state="hidden")
    watched.push(25)
    shows(dead=1, waiting=1, open=1)
    assert page.evaluate("window.isTheSamePage")


def test_every_page_is_live_while_data_flows(viewer: Viewer, running: Running) -> None:
    running.api.push("flow", {"n": 0}, partition="p0")  # the job needs to know its columns
    stream = running.define(
        "tumbling", name="flowing", grace_ms=500, sources=["flow"], window_duration_ms=2000
    )
    running.api.push("letters", 1)
    (letter,) = running.api.take("letters", consumerGroup="g")
    running.api.ack(letter, "dlq", consumerGroup="g", error="rejected by the test")
    Sql(running.api)("CREATE STREAM evens AS SELECT COUNT(*) AS n FROM flow WINDOW TUMBLING(2s)")
    flow = Flow(running.broker)
    flow.start()
    try:
        viewer.open("/stream?namespace=tests&name=flowing")
        viewer.wait_for_states(lambda seen: seen.get("waiting", 0) >= 2, within=WITHIN)
        assert running.poll(stream) is not None
        for path, texts in PAGES.items():
            viewer.open(path)
            for text in texts:
                viewer.sees(text)
        _rows_of_a_query(viewer)
        _a_query_ends_with_its_page(viewer, running)
    finally:
        flow.stop()


def _rows_of_a_query(viewer: Viewer) -> None:
    """A SELECT in the console shows the rows that the pipeline computes."""
    page = viewer.open("/sql")
    page.locator(".cm-content").fill("SELECT n FROM flow LIMIT 3")
    viewer.click("Run")
    page.get_by_text("3 rows, newest first").wait_for(timeout=WITHIN * 1000)
    assert all(text.isdigit() for text in page.locator(".qs-table tbody td").all_inner_texts())


def _a_query_ends_with_its_page(viewer: Viewer, running: Running) -> None:
    """A SELECT without an end is ended when the page is closed."""
    page = viewer.open("/sql")
    page.locator(".cm-content").fill("SELECT n FROM flow")
    viewer.click("Run")
    page.get_by_text("rows, newest first").wait_for(timeout=WITHIN * 1000)
    sql = Sql(running.api)
    assert sql.temporary_queues()
    page.close()
    eventually(lambda: not sql.temporary_queues(), within=WITHIN)
