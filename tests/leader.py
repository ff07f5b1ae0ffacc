"""A leading pipeline, as the database sees it."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.database import connect

LEAD = "UPDATE queenspark.pipeline SET holder = 'me', epoch = 0, expires_at = now() + interval '1 hour'"
"""Make a pipeline of this test the leader, in a database that no other test uses."""

RESIGN = "UPDATE queenspark.pipeline SET holder = NULL, expires_at = NULL"


@contextmanager
def leading(database_url: str | None) -> Iterator[None]:
    """Lead in a shared database; afterwards nobody does, as other tests expect."""
    assert database_url is not None
    with connect(database_url) as connection:
        connection.execute(LEAD)
        try:
            yield
        finally:
            connection.execute(RESIGN)
