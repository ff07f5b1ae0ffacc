"""Pages of other sites cannot use an open broker, and not under a name of their own either."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartBroker
from tests.wire.api import Api, refused
from tests.wire.raw_connection import RawConnection

SQL = "/api/v1/sql"
STATEMENT = b'{"sql": "SHOW QUEUES"}'
ALLOWED, EVIL = "http://localhost:8080", "https://evil.example"


@pytest.fixture(scope="module")
def some(module_broker: StartBroker) -> Iterator[Api]:
    """The API of a broker that one origin, and a proxy with a name, may use."""
    with Api(module_broker(cors_origins=f"{ALLOWED}, https://queue.example").url) as api:
        yield api


def status(api: Api, **headers: str) -> int:
    """The status of a statement with these headers, as a form of any page can send it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.http.post(SQL, content=STATEMENT, headers={"Content-Type": "text/plain", **named}).status_code


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost:3000", "http://127.0.0.1", ""])
def test_a_page_of_another_origin_is_refused(api: Api, some: Api, origin: str) -> None:
    assert status(api, Origin=origin) == 403
    assert status(some, Origin=origin) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_from_another_site_is_refused_without_an_origin_too(api: Api, some: Api, site: str) -> None:
    for each in (api, some):
        assert status(each, Sec_Fetch_Site=site) == 403
        assert each.http.get("/api/v1/pop", headers={"Sec-Fetch-Site": site}).status_code == 403


def test_the_error_names_the_origin_and_the_setting(api: Api) -> None:
    response = api.http.post(SQL, content=STATEMENT, headers={"Origin": EVIL, "Sec-Fetch-Site": "cross-site"})
    message = refused(response, 403)
    assert EVIL in message
    assert "QUEENSPARK_CORS_ORIGINS" in message
    message = refused(api.http.get("/metrics", headers={"Host": "rebound.example:6632"}), 403)
    assert "rebound.example" in message
    assert "QUEENSPARK_CORS_ORIGINS" in message


def test_pages_of_the_broker_itself_and_typed_addresses_are_let_in(api: Api) -> None:
    assert status(api) == 200
    assert status(api, Origin=api.url) == 200
    assert status(api, Origin=api.url, Sec_Fetch_Site="same-origin") == 200
    assert status(api, Sec_Fetch_Site="none") == 200
    # A proxy that passes its own name as Host: the browser vouches for the page.
    assert status(api, Origin="https://queue.example", Sec_Fetch_Site="same-origin") == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_an_allowed_origin_is_let_in(some: Api, site: str) -> None:
    assert status(some, Origin=ALLOWED, Sec_Fetch_Site=site) == 200
    assert status(some, Origin=ALLOWED) == 200


@pytest.mark.parametrize(
    "host", ["rebound.example", "rebound.example:6632", "localhost.evil.example", "127.evil.example", "[::"]
)
def test_a_foreign_host_is_refused_by_a_broker_on_loopback(api: Api, host: str) -> None:
    assert status(api, Host=host) == 403
    assert status(api, Host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin") == 403


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:1", "127.0.0.1:9", "127.1.2.3", "[::1]", "[::1]:6632"]
)
def test_every_name_of_this_machine_is_a_host(api: Api, host: str) -> None:
    assert status(api, Host=host) == 200


def test_the_host_of_an_allowed_origin_is_let_in(some: Api) -> None:
    assert status(some, Host="queue.example") == 200
    assert status(some, Host="other.example") == 403


def test_a_request_without_a_host_is_let_in(api: Api) -> None:
    with RawConnection(int(api.url.rpartition(":")[2])) as connection:
        connection.send(b"GET /api/v1/me HTTP/1.0\r\n\r\n")
        assert connection.status() == 200


def test_public_routes_and_preflights_are_for_every_page(api: Api) -> None:
    from_afar = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Host": "rebound.example"}
    assert api.http.get("/health", headers=from_afar).status_code == 200
    assert api.http.get("/", headers={"Accept": "text/html", **from_afar}).status_code == 302
    assert api.http.options(SQL, headers=from_afar).status_code == 204


def test_a_star_lets_every_page_in(module_broker: StartBroker) -> None:
    with Api(module_broker(cors_origins="*").url) as every:
        assert status(every, Origin=EVIL, Sec_Fetch_Site="cross-site") == 200
        assert status(every, Sec_Fetch_Site="cross-site") == 200
        assert status(every, Host="rebound.example") == 200


def test_a_broker_on_the_network_has_any_name(module_broker: StartBroker) -> None:
    with Api(module_broker(host="0.0.0.0", insecure="true").url) as exposed:
        assert status(exposed, Host="queue.example") == 200
        assert status(exposed, Host="queue.example", Origin="http://queue.example") == 200
        assert status(exposed, Host="queue.example", Origin=EVIL) == 403


def test_with_access_control_the_credential_decides(module_broker: StartBroker) -> None:
    with Api(module_broker(access_control="true").url) as closed:
        assert status(closed, Host="queue.example", Origin=EVIL, Sec_Fetch_Site="cross-site") == 401
