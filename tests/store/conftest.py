"""A store on a fresh database, and a desk to work at."""

from collections.abc import AsyncIterator

import pytest

from queenspark.store.store import Store
from tests.store.desk import Desk

KEY = bytes(range(32))


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    """An open store with an encryption key."""
    opened = Store(database, pool_size=6, encryption_key=KEY)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def desk(store: Store) -> Desk:
    """Shorthands for common operations."""
    return Desk(store)
