"""Failed logins slow down, without locking out known callers, and tell nothing about the database."""

import asyncio
import logging

import httpx2
import pytest

from queenspark.broker.access.gate import FREE_FAILURES
from queenspark.broker.app import application
from queenspark.broker.broker import Broker
from queenspark.settings import Settings
from queenspark.store.errors import DatabaseUnavailable
from tests.access.conftest import make_key
from tests.conftest import StartBroker
from tests.wire.api import Api, refused


def test_failed_logins_delay_guessers_but_not_known_callers(broker: StartBroker) -> None:
    closed = broker(access_control="true")
    _, good = make_key(closed.database_url, role="read-only")
    with Api(closed.url) as api:
        known = {"X-API-Key": good}
        assert api.http.get("/api/v1/me", headers=known).status_code == 200
        statuses = [
            api.http.get("/api/v1/me", headers={"X-API-Key": f"qsk_guess_{number}"}).status_code
            for number in range(FREE_FAILURES + 2)
        ]
        assert statuses == [401] * (FREE_FAILURES + 1) + [429]
        assert "try again in" in refused(api.http.get("/api/v1/me", headers={"X-API-Key": "qsk_a_b"}), 429)
        assert api.http.get("/api/v1/me", headers=known).status_code == 200


def test_without_the_database_an_unknown_caller_does_not_learn_its_address(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def request() -> httpx2.Response:
        url = "postgresql://nobody@127.0.0.1:1/nowhere"
        broker = Broker(Settings(database_url=url, access_control=True))

        async def find(ids: object) -> object:
            raise DatabaseUnavailable('connection to "10.1.2.3", user "root" failed')

        monkeypatch.setattr(broker.store.api_keys, "find", find)
        transport = httpx2.ASGITransport(app=application(broker))
        async with httpx2.AsyncClient(transport=transport, base_url="http://broker") as client:
            return await client.get("/api/v1/me", headers={"X-API-Key": "qsk_a_b"})

    with caplog.at_level(logging.WARNING, "queenspark.broker"):
        response = asyncio.run(request())
    assert "10.1.2.3" not in response.text
    assert "not available" in refused(response, 503)
    assert response.headers["retry-after"] == "1"
    assert response.json()["retryable"] is True
    assert "10.1.2.3" in caplog.text


def test_a_revocation_does_not_lock_out_known_callers(broker: StartBroker) -> None:
    closed = broker(access_control="true")
    _, good = make_key(closed.database_url, role="admin")
    _, fresh = make_key(closed.database_url, role="read-only")
    revoked, leaked = make_key(closed.database_url, role="read-only")
    with Api(closed.url) as api:

        def status(credential: str) -> int:
            return api.http.get("/api/v1/me", headers={"X-API-Key": credential}).status_code

        assert [status(good), status(leaked)] == [200, 200]
        for number in range(FREE_FAILURES + 16):
            status(f"qsk_guess_{number}")
        # Expires every cached key.
        path = f"/api/v1/keys/{revoked.id}"
        assert api.http.delete(path, headers={"X-API-Key": good}).status_code == 200
        assert status(good) == 200
        # A guess learns nothing, not even from a valid key; the revoked one is checked once.
        assert [status(leaked), status(leaked)] == [401, 429]
        assert [status(fresh), status("qsk_a_b")] == [429, 429]
        assert status(good) == 200
