"""Waiting for the horizon, below which a pop finds everything."""

from tests.database import connect
from tests.wire.deadline import eventually


def wait_for_horizon(database_url: str) -> None:
    """Wait until all committed messages are below the horizon.

    A broker has short transactions of its own: a delayed one hides later pushes.
    """
    with connect(database_url) as connection:
        row = connection.execute("SELECT frontier()").fetchone()
        eventually(lambda: connection.execute("SELECT horizon() >= %s", row).fetchone() == (True,))
