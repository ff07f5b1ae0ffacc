"""A broker with access control, and callers of every kind."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queenspark.store.api_keys import ApiKey, NewKey
from queenspark.store.store import Store
from tests.access.issuer import SECRET, Issuer, public, publishing
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.wire.api import Api

As = Callable[[str | None], Api]


@pytest.fixture(scope="package")
def issuer() -> Iterator[Issuer]:
    """An issuer that publishes the public keys of its tokens."""
    with publishing() as issuer:
        issuer.keys = [public(algorithm) for algorithm in ("RS256", "ES256", "EdDSA")]
        yield issuer


@pytest.fixture(scope="module")
def closed(module_broker: StartBroker, issuer: Issuer) -> Broker:
    """A broker that takes API keys, tokens of a secret, and tokens of the issuer."""
    return module_broker(
        access_control="true", jwt_enabled="true", jwt_secret=SECRET, jwt_jwks_url=issuer.url
    )


@pytest.fixture(scope="module")
def as_(closed: Broker) -> Iterator[As]:
    """The API of the closed broker as seen by the owner of a credential; None for an anonymous caller."""
    apis: dict[str | None, Api] = {}

    def api(credential: str | None) -> Api:
        if credential not in apis:
            apis[credential] = Api(closed.url, closed.database_url)
            if credential is not None:
                apis[credential].http.headers["Authorization"] = f"Bearer {credential}"
        return apis[credential]

    yield api
    for each in apis.values():
        each.http.close()


def make_key(database_url: str, name: str = "key", **options: Any) -> tuple[ApiKey, str]:
    """A key, made in the database itself."""

    async def make() -> tuple[ApiKey, str]:
        store = Store(database_url, pool_size=2)
        await store.open()
        try:
            return await store.api_keys.create(NewKey(name=name, **options), "a test")
        finally:
            await store.close()

    return asyncio.run(make())


@pytest.fixture(scope="module")
def key(closed: Broker) -> Callable[..., str]:
    """Makes API keys of the closed broker: `key(role="admin")`, `key(scopes=["queue:a:push"])`."""
    return lambda name="key", **options: make_key(closed.database_url, name, **options)[1]


@pytest.fixture(scope="module")
def admin(as_: As, key: Callable[..., str]) -> Api:
    """The API as an administrator sees it."""
    return as_(key("root", role="admin"))
