"""The dashboard of a broker with access control: login, sessions, rights and headers."""

import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from queenspark.store.migrate import migrate
from queenspark.ui.login import FREE_FAILURES
from tests.access.certificates import Authority, replace
from tests.access.conftest import make_key
from tests.broker_process import Broker, clean_environment, free_port
from tests.postgres_servers import temporary_postgres
from tests.ui.conftest import NO_BROWSER, Dashboard, Viewer, chromium
from tests.wire.api import Api, responded
from tests.wire.deadline import eventually

SESSION = "queenspark_session"


class Closed:
    """A broker with access control, and its dashboard."""

    def __init__(self, broker: Broker, log_file: Path) -> None:
        self.broker = broker
        with ThreadPoolExecutor(1) as pool:  # Playwright has an event loop in this thread
            _, self.root = pool.submit(make_key, broker.database_url, "root", role="admin").result()
        self.api = Api(broker.url, broker.database_url)
        self.api.http.headers["Authorization"] = f"Bearer {self.root}"
        self.api.push("orders", {"n": 1})
        self.api.push("secrets", {"n": 1})
        # The key of the process's own environment must not help anybody.
        self.dashboard = Dashboard(broker, self.api, log_file, api_key=self.root)
        self.url = self.dashboard.url

    def close(self) -> None:
        """End the dashboard."""
        self.dashboard.stop()
        self.api.http.close()

    def key(self, name: str, **options: Any) -> str:
        """A new key."""
        made = responded(self.api.post("/api/v1/keys", {"name": name, **options}), 201)
        return str(made["key"])

    def log_in(self, credential: str, address: str = "127.0.0.1", **headers: str) -> httpx2.Response:
        """Send the form of the login page, as a browser at an address does."""
        transport = httpx2.HTTPTransport(local_address=address)
        with httpx2.Client(base_url=self.url, transport=transport, timeout=20) as client:
            data = {"credential": credential, "next": "/queues"}
            return client.post("/login", data=data, headers={"Origin": self.url, **headers})


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    if chromium() is None:
        pytest.skip(NO_BROWSER)
    folder = tmp_path_factory.mktemp("login")
    with temporary_postgres(durable=False) as postgres, ExitStack() as running:
        migrate(postgres.url)
        broker = Broker(postgres.url, folder / "broker.log", access_control="true", stats_interval_seconds=1)
        running.callback(broker.stop)
        found = Closed(broker, folder / "ui.log")
        running.callback(found.close)
        yield found


Enter = Callable[..., Page]


@pytest.fixture
def enter(closed: Closed, browser: Browser, context: BrowserContext) -> Iterator[Enter]:
    """Opens a page and logs in there; a second user has a context of their own."""
    with ExitStack() as contexts:
        free = [context]

        def opened(credential: str, path: str = "/") -> Page:
            own = free.pop() if free else contexts.enter_context(browser.new_context())
            viewer = Viewer(closed.dashboard, own.new_page())
            page = viewer.page
            page.goto(closed.url + path)
            page.get_by_label("API key or token").fill(credential)
            page.get_by_role("button", name="Log in").click()
            page.locator("nav").wait_for()
            assert viewer.troubles == []
            return page

        yield opened


@pytest.mark.parametrize(
    ("theme", "background"), [("dark", "rgb(18, 17, 16)"), ("light", "rgb(250, 249, 246)")]
)
def test_the_login_page_has_the_chosen_colours(
    closed: Closed, browser: Browser, theme: str, background: str
) -> None:
    # The system prefers the other ones.
    other: Any = "light" if theme == "dark" else "dark"
    with browser.new_context(color_scheme=other) as context:
        context.add_cookies([{"name": "theme", "value": theme, "url": closed.url}])
        page = context.new_page()
        page.goto(f"{closed.url}/login")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
        context.clear_cookies()
        page.reload()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


def test_a_user_logs_in_sees_their_own_and_logs_out(closed: Closed, enter: Enter) -> None:
    scoped = closed.key("of orders", scopes=["queue:orders:read"])
    page = enter(scoped, "/queues")
    assert page.url == f"{closed.url}/queues"
    page.get_by_role("link", name="orders").wait_for()
    assert page.get_by_text("secrets").count() == 0
    names = page.locator("nav a.item").all_inner_texts()
    assert not any(word in " ".join(names) for word in ("Streams", "Jobs", "System", "API keys", "Audit"))
    # Another user at the same time sees more, and neither sees the other's.
    everything = enter(closed.root, "/queues")
    everything.get_by_role("link", name="secrets").wait_for()
    page.wait_for_timeout(1200)
    assert page.get_by_text("secrets").count() == 0
    (cookie,) = [each for each in page.context.cookies() if each["name"] == SESSION]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
    assert len(cookie["value"]) >= 43
    assert scoped not in page.content()
    page.get_by_role("button", name="Log out").click()
    page.get_by_text("You are logged out.").wait_for()
    page.goto(f"{closed.url}/queues")
    assert "/login" in page.url
    with httpx2.Client(base_url=closed.url, cookies={SESSION: cookie["value"]}) as thief:
        assert thief.get("/queues").status_code == 303
    everything.reload()
    everything.get_by_role("link", name="secrets").wait_for()


def test_actions_without_the_right_are_not_offered(closed: Closed, enter: Enter) -> None:
    page = enter(closed.key("reader", role="read-only"), "/queue?name=orders")
    for name, right in (("Push a message", "queue:push"), ("Delete", "queue:admin")):
        button = page.get_by_role("button", name=name, exact=True).first
        assert button.is_disabled()
        assert f"reader lacks the right {right}" in (button.get_attribute("title") or "")
    for path in ("/system", "/keys", "/audit"):
        response = page.request.get(closed.url + path)
        assert response.status == 403
        assert "reader lacks the right" in response.text()


def test_a_revoked_key_leads_back_to_the_login_page(closed: Closed, enter: Enter) -> None:
    secret = closed.key("short-lived", role="read-only")
    page = enter(secret, "/sql")
    (id_,) = [
        key["id"]
        for key in closed.api.read("/api/v1/keys", limit=100)["keys"]
        if key["name"] == "short-lived"
    ]
    closed.api.delete(f"/api/v1/keys/{id_}")
    page.get_by_text("was revoked or has expired").wait_for()
    assert page.url.endswith("next=%2Fsql")
    page.goto(f"{closed.url}/sql")
    page.get_by_label("API key or token").wait_for()


def test_pages_opened_while_the_broker_is_stuck_lead_to_the_login_page(
    closed: Closed, context: BrowserContext, tmp_path: Path
) -> None:
    closed.key("of the audit log", role="read-only")
    with closed.broker.stuck():
        fresh = Dashboard(closed.broker, closed.api, tmp_path / "ui.log")
        viewer = Viewer(fresh, context.new_page())
        page = viewer.open("/queues")
        viewer.sees("it is unknown whether it requires a login")
        viewer.troubles.clear()  # the browser notes the status, 503
    try:
        page.get_by_label("API key or token").fill(closed.root)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="orders").wait_for()
        with closed.broker.stuck():
            others = [context.new_page() for _ in range(2)]
            for other, path in zip(others, ("/keys", "/audit"), strict=True):
                other.goto(fresh.url + path)
                other.get_by_text("Loading…").wait_for()
        for other, text in zip(others, ("root", "POST /api/v1/keys"), strict=True):
            other.locator("tbody").get_by_text(text).first.wait_for()
        assert viewer.troubles == []
    finally:
        fresh.stop()


def test_administrators_make_and_revoke_keys_and_see_who_did_it(closed: Closed, enter: Enter) -> None:
    page = enter(closed.root, "/keys")
    page.get_by_role("button", name="New key").click()
    dialog = page.locator(".qs-dialog")
    dialog.get_by_label("Name").fill("from the page")
    dialog.get_by_label("Scopes").fill("queue:orders:read, queue:orders:push")
    dialog.get_by_role("button", name="Create").click()
    secret = page.locator(".qs-secret").inner_text()
    assert httpx2.get(f"{closed.broker.url}/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()[
        "scopes"
    ] == ["queue:orders:read", "queue:orders:push"]
    page.get_by_role("button", name="Done").click()
    page.get_by_text(secret).wait_for(state="detached")
    assert secret not in page.content()
    row = page.locator("tr", has_text="from the page")
    row.get_by_role("button", name="Revoke").click()
    page.locator(".qs-dialog").get_by_role("button", name="Revoke").click()
    row.get_by_text("revoked").wait_for()
    page.goto(f"{closed.url}/audit")
    page.locator("tr", has_text="DELETE /api/v1/keys").filter(has_text="from the page").first.wait_for()


def test_the_audit_log_has_the_address_of_the_browser(closed: Closed, enter: Enter) -> None:
    page = enter(closed.root, "/queues")
    page.context.set_extra_http_headers({"X-Forwarded-For": "203.0.113.7"})  # as a proxy adds it
    page.goto(f"{closed.url}/keys")
    page.get_by_role("button", name="New key").click()
    dialog = page.locator(".qs-dialog")
    dialog.get_by_label("Name").fill("of a distant browser")
    dialog.get_by_label("Scopes").fill("queue:orders:read")
    dialog.get_by_role("button", name="Create").click()
    page.locator(".qs-secret").wait_for()
    (act,) = [
        act
        for act in closed.api.read("/api/v1/audit", caller="root")["acts"]
        if (act["subject"] or "").endswith("of a distant browser")
    ]
    assert act["address"] == "127.0.0.1 for 203.0.113.7, 127.0.0.1"


def test_pages_require_a_login(closed: Closed) -> None:
    with httpx2.Client(base_url=closed.url, timeout=20) as client:
        for path in ("/", "/queues", "/queue?name=orders", "/system", "/keys", "/nothing"):
            response = client.get(path)
            assert response.status_code == 303, path
            assert response.headers["location"].startswith("/login"), path
        assert client.get("/_nicegui_ws/socket.io/?EIO=4&transport=polling").status_code in (401, 403)
        same = {"Origin": closed.url}
        assert client.get("/_nicegui_ws/socket.io/?EIO=4&transport=polling", headers=same).status_code == 401
        assert client.post("/queues").status_code == 401
        for wrong in ("", "x" * 43, ".."):
            assert client.get("/queues", headers={"Cookie": f"{SESSION}={wrong}"}).status_code == 303


def test_forms_of_other_sites_are_refused(closed: Closed) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert closed.log_in(closed.root, **headers).status_code == 403
    entered = closed.log_in(closed.root)
    assert (entered.status_code, entered.headers["location"]) == (303, "/queues")
    cookie = entered.headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))
    with httpx2.Client(base_url=closed.url, headers={"Cookie": cookie.partition(";")[0]}) as client:
        assert client.post("/logout", headers={"Origin": "https://evil.example"}).status_code == 403
        assert client.get("/queues").status_code == 200
        socket = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
        assert client.get(socket, headers={"Origin": "https://evil.example"}).status_code == 403
        assert client.post("/logout", headers={"Origin": closed.url}).status_code == 303
        assert client.get("/queues").status_code == 303


def test_the_page_after_the_log_in_is_one_of_ours(closed: Closed) -> None:
    with httpx2.Client(base_url=closed.url, timeout=20) as client:
        for elsewhere in ("https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example"):
            data = {"credential": closed.root, "next": elsewhere}
            response = client.post("/login", data=data, headers={"Origin": closed.url})
            assert response.headers["location"] == "/"
        assert "<script" not in client.get("/login?reason=<script>&next=/<script>").text


def test_failed_log_ins_slow_down(closed: Closed) -> None:
    for _ in range(FREE_FAILURES + 1):
        response = closed.log_in("qsk_wrong", "127.0.0.9")
        assert response.status_code == 401
        assert "Unknown key or token." in response.text
    slowed = closed.log_in("qsk_wrong", "127.0.0.9")
    assert slowed.status_code == 429
    assert int(slowed.headers["retry-after"]) >= 1
    assert closed.log_in(closed.root, "127.0.0.10").status_code == 303


def test_a_header_does_not_change_the_address_of_a_log_in(closed: Closed) -> None:
    assert closed.log_in("qsk_wrong", **{"X-Forwarded-For": "203.0.113.9"}).status_code == 401
    log = closed.dashboard.log_file.read_text()
    assert "a login from 127.0.0.1 failed" in log
    assert "203.0.113.9" not in log


def test_behind_a_proxy_with_tls_the_cookie_is_for_https_only(closed: Closed) -> None:
    secure = closed.log_in(closed.root, Origin="https://dash.example", Host="dash.example")
    assert secure.headers["set-cookie"].startswith("__Host-")
    assert "secure" in secure.headers["set-cookie"].lower().split("; ")


def test_every_response_has_strict_headers(closed: Closed) -> None:
    cookie = closed.log_in(closed.root).headers["set-cookie"].partition(";")[0]
    nonces = set()
    for path, entered in (("/queues", True), ("/login", False), ("/queues", False), ("/favicon.ico", True)):
        response = httpx2.get(closed.url + path, headers={"Cookie": cookie} if entered else {}, timeout=20)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "same-origin"
        scripts = re.search(r"script-src ([^;]*)", policy)
        assert scripts is None or "unsafe-inline" not in scripts[1]
        nonces |= set(re.findall(r"'nonce-([^']+)'", policy))
    assert len(nonces) == 2


def test_an_open_broker_is_not_shown_to_the_network(
    dashboard: Dashboard,
) -> None:
    environment = clean_environment(url=dashboard.broker.url, ui_host="0.0.0.0", ui_port=free_port())
    command = [sys.executable, "-m", "queenspark", "ui"]
    refused = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert "has no access control" in refused.stderr
    assert "--insecure" in refused.stderr
    assert httpx2.get(f"{dashboard.url}/login").headers["location"] == "/"


class _TlsBroker(Broker):
    """A broker that speaks HTTPS."""

    def healthy(self) -> bool:
        self.url = f"https://127.0.0.1:{self.port}"
        return super().healthy()


class TlsDashboard(NamedTuple):
    """A dashboard and its broker that speak HTTPS."""

    dashboard: Dashboard
    authority: Authority
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def tls(closed: Closed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsDashboard]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    certificate, key = authority.issue("broker")
    ui_certificate, ui_key = authority.issue("dashboard")
    with ExitStack() as running:
        broker = _TlsBroker(
            closed.broker.database_url, folder / "broker.log", access_control="true",
            tls_certificate=certificate, tls_key=key,
        )  # fmt: skip
        running.callback(broker.stop)
        dashboard = Dashboard(
            broker, closed.api, folder / "ui.log", ui_tls_certificate=ui_certificate,
            ui_tls_key=ui_key, ca=authority.file, ui_host="0.0.0.0",
        )  # fmt: skip
        running.callback(dashboard.stop)
        yield TlsDashboard(dashboard, authority, ui_certificate, ui_key)


def test_the_dashboard_speaks_tls_and_checks_the_broker(closed: Closed, tls: TlsDashboard) -> None:
    context = ssl.create_default_context(cafile=tls.authority.file)
    url = tls.dashboard.url
    with httpx2.Client(base_url=url, verify=context, timeout=20) as client:
        response = client.post("/login", data={"credential": closed.root}, headers={"Origin": url})
        assert response.status_code == 303, response.text
        cookie = response.headers["set-cookie"]
        assert cookie.startswith("__Host-queenspark_session=")
        assert "secure" in cookie.lower().split("; ")
        pages = client.get("/queues", headers={"Cookie": cookie.partition(";")[0]})
        assert pages.status_code == 200


def test_the_dashboard_uses_a_renewed_certificate_without_a_restart(tls: TlsDashboard) -> None:
    port = httpx2.URL(tls.dashboard.url).port
    assert port is not None

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", port)).strip()

    before = shown()
    assert before == tls.certificate.read_text().strip()
    certificate, key = tls.authority.issue("renewed dashboard")
    replace(key, tls.key)
    replace(certificate, tls.certificate)
    eventually(lambda: shown() != before)
    assert shown() == certificate.read_text().strip()
