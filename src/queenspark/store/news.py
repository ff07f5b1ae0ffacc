"""NOTIFY and LISTEN: notifications from any session to all listeners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

import msgspec
import psycopg

from .database import Database
from .errors import DatabaseUnavailable

CHANNEL = "queenspark"
MOST_BYTES = 7000  # PostgreSQL's limit per notification is 8000


class News(msgspec.Struct, omit_defaults=True):
    """One notification: queues with new messages, changed names, and whether modes or API keys changed."""

    sender: str
    wake: list[str] = []
    forget: list[str] = []
    modes: bool = False
    keys: bool = False


def pack(
    sender: str,
    wake: Collection[str],
    forget: Collection[str] = (),
    *,
    modes: bool = False,
    keys: bool = False,
) -> list[str]:
    """Encode notifications as texts within the size limit."""
    packed: list[str] = []
    news = News(sender, modes=modes, keys=keys)
    size = 0
    for names, field in ((wake, "wake"), (forget, "forget")):
        for name in names:
            size += len(name.encode()) * 2 + 4
            if size > MOST_BYTES:
                packed.append(msgspec.json.encode(news).decode())
                news, size = News(sender), len(name.encode()) * 2 + 4
            getattr(news, field).append(name)
    packed.append(msgspec.json.encode(news).decode())
    return packed


async def tell(database: Database, text: str) -> None:
    """Send a text, in its own transaction."""
    await database.rows("notify", {"message": text})


async def listen(database: Database) -> AsyncIterator[str]:
    """Yield texts as they arrive; the first, empty one signals that listening has begun."""
    try:
        async with await psycopg.AsyncConnection.connect(
            database.url, autocommit=True, application_name="queenspark listen"
        ) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            yield ""
            async for notify in connection.notifies():
                yield notify.payload
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"the listening connection broke: {error}") from error


async def tell_of_pushes(database: Database, queues: Collection[str], sender: str = "store") -> None:
    """Wake the polls that wait for queues, on every broker."""
    for text in pack(sender, queues):
        await tell(database, text)


async def tell_of_keys(database: Database, sender: str = "store") -> None:
    """Make every broker read its API keys again."""
    for text in pack(sender, (), keys=True):
        await tell(database, text)
