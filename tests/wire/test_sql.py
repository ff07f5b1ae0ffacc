"""SQL statements over HTTP: what each one does, and what is refused, with line and column."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.wire.api import Api
from tests.wire.sql import Sql


@pytest.fixture
def sql(api: Api) -> Iterator[Sql]:
    """Statements at the shared broker."""
    return Sql(api)


@pytest.fixture
def tag() -> str:
    """A part of names that no other test uses."""
    return f"t{uuid4().hex[:10]}"


@pytest.fixture
def orders(sql: Sql, tag: str) -> str:
    """A queue with orders."""
    name = f"orders_{tag}"
    sql.api.push(name, {"country": "DE", "amount": 5}, {"country": "FR", "amount": 7})
    return name


def test_a_job_is_a_definition_with_a_queue_of_its_own(sql: Sql, orders: str, tag: str) -> None:
    made = sql.one(
        f"create stream totals_{tag} as select country, sum(amount) as total from {orders}"
        " group by country window tumbling(1m)"
    )
    statement = (
        f"CREATE STREAM totals_{tag} AS SELECT country, SUM(amount) AS total FROM {orders} "
        "GROUP BY country WINDOW TUMBLING(1m)"
    )
    assert made == {
        "kind": "create_stream", "name": f"totals_{tag}", "version": 1, "changed": True,
        "statement": statement, "warnings": [],
    }  # fmt: skip
    ((version, body),) = sql.bodies(f"totals_{tag}")
    (source,) = body["sources"]
    assert version == 1
    assert body["spec"] == {"kind": "tumbling", "duration_us": 60_000_000}
    assert (source["queue"], source["txid"], source["id"]) == (orders, 0, 0)
    assert body["query"]["statement"] == statement
    assert (body["partitioned"], body["event_time"], body["start"]) == (True, None, "earliest")
    assert sql.job(f"totals_{tag}")["state"] == "running"
