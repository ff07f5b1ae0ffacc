"""Failed logins slow down, without locking out known callers."""

import pytest

from queenspark.broker.access.failures import FREE, Failures
from queenspark.broker.errors import ApiError
from tests.access.conftest import make_key
from tests.conftest import StartBroker
from tests.wire.api import Api, refused


def test_an_address_that_keeps_failing_waits_longer_each_time() -> None:
    failures = Failures()
    waits = []
    for number in range(FREE + 4):
        failures.note("10.0.0.1")
        if number < FREE:
            failures.check("10.0.0.1")
        else:
            with pytest.raises(ApiError) as refusal:
                failures.check("10.0.0.1")
            waits.append(refusal.value.retry_after)
    assert waits == [1, 2, 4, 8]
    failures.check("10.0.0.2")


def test_a_guesser_is_slowed_down_and_a_known_caller_is_not(broker: StartBroker) -> None:
    closed = broker(access_control="true")
    _, good = make_key(closed.database_url, role="read-only")
    with Api(closed.url) as api:
        known = {"X-API-Key": good}
        assert api.http.get("/api/v1/me", headers=known).status_code == 200
        statuses = [
            api.http.get("/api/v1/me", headers={"X-API-Key": f"qsk_guess_{number}"}).status_code
            for number in range(FREE + 2)
        ]
        assert statuses == [401] * (FREE + 1) + [429]
        assert "try again in" in refused(api.http.get("/api/v1/me", headers={"X-API-Key": "qsk_a_b"}), 429)
        assert api.http.get("/api/v1/me", headers=known).status_code == 200
