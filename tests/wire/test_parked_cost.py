"""How often parked polls query the database."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql

from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.wire.api import Api, responded
from tests.wire.deadline import eventually

CONSUMERS = 8
MESSAGES = 20


@pytest.fixture
def counted(broker: StartBroker, database: str) -> Broker:
    """A broker whose calls of functions PostgreSQL counts."""
    with psycopg.connect(database, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET track_functions = 'all'").format(name))
    return broker(database_url=database)


def pops(broker: Broker) -> int:
    """Number of pops sent to the database."""
    with psycopg.connect(broker.database_url) as connection:
        rows = connection.execute(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'pop'"
        ).fetchall()
    return int(rows[0][0])


def test_a_message_costs_two_pops_however_many_polls_are_parked(counted: Broker) -> None:
    """One that brings it, and one that finds no more; consumers that come back simply wait."""

    def consume(_: int) -> None:
        with Api(counted.url) as own:
            while True:
                response = own.pop("q", wait="true", timeout=20_000, consumerGroup="g")
                (message,) = responded(response, 200)["messages"]
                own.ack(message, consumerGroup="g")
                if message["data"] == "end":
                    return

    with Api(counted.url) as api, ThreadPoolExecutor(CONSUMERS) as threads:
        work = [threads.submit(consume, n) for n in range(CONSUMERS)]
        eventually(lambda: api.parked() == CONSUMERS)
        before = pops(counted)
        for number in range(MESSAGES):
            api.push("q", number, partition=f"p{number % 10}")
            eventually(lambda: api.parked() == CONSUMERS)
        # The statistics of a connection reach the others up to a second later.
        eventually(lambda: pops(counted) >= before + MESSAGES)
        assert pops(counted) - before < 2.5 * MESSAGES
        for number in range(CONSUMERS):
            api.push("q", "end", partition=f"p{number}")
        for each in work:
            each.result(30)
