"""NOTIFY and LISTEN: short texts from any session to all that listen."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import psycopg

from .database import Database
from .errors import DatabaseUnavailable

CHANNEL = "queenspark"
MOST_BYTES = 7000  # PostgreSQL takes 8000 in one notification


async def tell(database: Database, text: str) -> None:
    """Send a text, in a transaction of its own."""
    await database.rows("notify", {"message": text})


async def listen(database: Database) -> AsyncIterator[str]:
    """Texts as they come; the first, empty one says that listening has begun."""
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


async def tell_of_push(database: Database, queue: str) -> None:
    """Wake the polls that wait for a queue, on every broker."""
    news = {"sender": "spark", "wake": [queue]}
    await tell(database, msgspec.json.encode(news).decode())
