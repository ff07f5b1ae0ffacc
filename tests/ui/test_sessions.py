"""Unused browser sessions end; a broker that may be open is not shown to the network."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

from queenspark.ui.session import Configuration, Session, Sessions
from tests.broker_process import free_port
from tests.conftest import StartBroker
from tests.ui.conftest import Dashboard

SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run in a thread of its own: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(work())).result()


def test_a_session_without_use_ends(broker: StartBroker) -> None:
    started = broker()

    async def work() -> None:
        sessions = Sessions(Configuration(started.url, idle_seconds=60))
        ids = [await sessions.log_in("anything") for _ in range(2)]
        found = [sessions.find({"queenspark_session": id_}) for id_ in ids]
        assert all(isinstance(each, Session) for each in found)
        assert found[0] is not found[1]
        assert found[0] is not None
        found[0].used_at -= 61
        await sessions.sweep()
        assert found[0].ended == "idle"
        assert sessions.find({"queenspark_session": ids[0]}) is None
        assert sessions.find({"queenspark_session": ids[1]}) is found[1]
        await sessions.close()

    run(work)


def test_a_broker_that_may_be_open_is_not_shown(dashboard: Dashboard, tmp_path: Path) -> None:
    broker = dashboard.broker
    original, port = broker.url, free_port()
    broker.url = f"http://127.0.0.1:{port}"  # no broker is running yet
    try:
        exposed = Dashboard(broker, dashboard.api, tmp_path / "ui.log", ui_host="0.0.0.0")
    finally:
        broker.url = original
    try:
        response = httpx2.get(exposed.url, timeout=20)
        assert response.status_code == 503
        assert "does not respond" in response.text
    finally:
        exposed.stop()


def test_an_open_dashboard_on_loopback_is_not_shown_under_a_foreign_name(dashboard: Dashboard) -> None:
    port = dashboard.url.rpartition(":")[2]
    for host in (f"rebound.example:{port}", "127.evil.example", f"localhost.evil.example:{port}"):
        for path in ("/", "/queues", SOCKET):
            headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
            response = httpx2.get(dashboard.url + path, headers=headers, timeout=20)
            assert response.status_code == 403, (host, path)
            assert "QUEENSPARK_UI_URL" in response.text
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", "[::1]:80"):
        response = httpx2.get(f"{dashboard.url}/queues", headers={"Host": host}, timeout=20)
        assert response.status_code == 200, host


def test_a_dashboard_has_the_name_of_its_url_and_on_the_network_any() -> None:
    behind = Configuration(is_local=True, ui_url="https://dash.example:8443/x")
    names = ("dash.example:8443", "DASH.example:8443", "localhost:6633", "")
    assert all(behind.accepts_host(name) for name in names)
    assert not behind.accepts_host("dash.example")
    assert not behind.accepts_host("rebound.example:8443")
    assert Configuration(is_local=False).accepts_host("rebound.example")
