"""API keys managed directly in the database, for the first key."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.serve import require_database
from queenspark.cli.server_extra import require_server
from queenspark.settings import Settings

if TYPE_CHECKING:
    from queenspark.store.store import Store

Json = dict[str, Any]


def create_directly(body: Mapping[str, Any]) -> Json:
    """Make a key, as `POST /api/v1/keys` does."""
    require_server()
    from queenspark.broker.errors import ApiError
    from queenspark.broker.keys import KeyRequest, new_key, shown_key

    try:
        wanted = new_key(msgspec.convert(body, KeyRequest))
    except (ApiError, msgspec.ValidationError) as error:
        raise Failure(f"{str(error)[:1].upper()}{str(error)[1:]}.", Exit.USAGE) from None

    async def create(store: "Store") -> Json:
        key, secret = await store.api_keys.create(wanted, _me())
        await store.audit.note(_me(), "database", "local", "keys create", f"{key.id} {key.name}", 201)
        return _plain(shown_key(key, secret))

    return _run(create)


def list_directly(query: Mapping[str, Any]) -> Json:
    """A page of the keys, as `GET /api/v1/keys` shows it."""
    require_server()
    from queenspark.broker.errors import ApiError
    from queenspark.broker.keys import shown_key
    from queenspark.broker.paging import PageQuery, page_of

    try:
        page = page_of(PageQuery(**query), "createdAt", visible=None)
    except ApiError as error:
        raise Failure(f"{error}.", Exit.USAGE) from None

    async def read(store: "Store") -> Json:
        keys, total = await store.api_keys.page(page)
        return {"keys": [_plain(shown_key(key)) for key in keys], "total": total}

    return _run(read)


def revoke_directly(id_: str) -> Json:
    """Revoke a key, as `DELETE /api/v1/keys/:id` does."""
    require_server()
    from queenspark.broker.keys import shown_key
    from queenspark.store.news import tell_of_keys

    async def revoke(store: "Store") -> Json:
        key = await store.api_keys.revoke(id_)
        if key is None:
            raise Failure(f"Key {id_} does not exist.")
        await tell_of_keys(store.database)
        await store.audit.note(_me(), "database", "local", "keys revoke", f"{key.id} {key.name}", 200)
        return _plain(shown_key(key))

    return _run(revoke)


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _plain(value: Any) -> Json:
    found: Json = msgspec.to_builtins(value)
    return found


def _run(work: "Callable[[Store], Awaitable[Json]]") -> Json:
    from queenspark.store.errors import StoreError
    from queenspark.store.migrate import migrate
    from queenspark.store.store import Store

    url = require_database(Settings.from_env())

    async def run() -> Json:
        store = Store(url, pool_size=2)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    try:
        migrate(url)
        return asyncio.run(run())
    except StoreError as error:
        raise Failure(str(error)) from None
