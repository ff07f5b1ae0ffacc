"""Brokers and pipelines with the least rights in the database, as docs/security.md gives them."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from queenspark.pipeline.streams.stream_source import store_of_this_process
from queenspark.store.errors import StoreError
from queenspark.store.migrate import migrate
from tests.access.conftest import make_key
from tests.conftest import StartBroker
from tests.pipeline.streams.local import LocalPipeline
from tests.wire.api import Api, push_operation, responded
from tests.wire.sql import Sql

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
STATEMENTS = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def as_role(url: str, role: str) -> str:
    """The URL of a database for another role; the tests' server trusts every role."""
    return psycopg.conninfo.make_conninfo(url, user=role)


@pytest.fixture
def granted(database: str) -> Iterator[str]:
    """A database whose owner has made the two roles."""
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in STATEMENTS:
            connection.execute(statement.encode())
    yield database
    with psycopg.connect(database, autocommit=True) as connection:
        for role in (b"queenspark_broker", b"queenspark_pipeline"):
            connection.execute(b"DROP OWNED BY " + role)
            connection.execute(b"DROP ROLE " + role)


def test_a_broker_does_all_its_work_with_its_own_role(broker: StartBroker, granted: str) -> None:
    started = broker(
        database_url=as_role(granted, "queenspark_broker"),
        access_control="true",
        stats_interval_seconds=0.2,
        retention_interval_seconds=0.2,
    )
    _, secret = make_key(as_role(granted, "queenspark_broker"), role="admin")
    with Api(started.url, granted) as api:
        api.http.headers["X-API-Key"] = secret
        api.configure("q", retentionSeconds=3600)
        api.push("q", {"n": 1}, {"n": 2})
        (message,) = api.take("q", consumerGroup="g")
        assert api.ack(message, "dlq", consumerGroup="g")["dlq"]
        assert api.transaction([push_operation("q", {"n": 3})])["success"]
        responded(api.http.post("/api/v1/dlq/retry", params={"queue": "q"}), 200)
        api.seek("g", "q", toBeginning=True)
        sql = Sql(api)
        sql("CREATE STREAM rows AS SELECT n FROM q; SHOW JOBS; DROP STREAM rows CASCADE")
        api.read("/api/v1/status")
        api.read("/api/v1/audit")
        responded(api.delete("/api/v1/resources/queues/q"), 200)
    assert started.stop() == 0
    assert "denied" not in started.log()
    assert "failed" not in started.log()


def test_a_pipeline_seals_windows_with_its_own_role(broker: StartBroker, granted: str) -> None:
    with Api(broker(database_url=granted).url, granted) as api:
        api.push("q", {"n": 1}, {"n": 2})
        Sql(api)("CREATE STREAM doubled AS SELECT n * 2 AS n FROM q")
        pipeline = LocalPipeline(as_role(granted, "queenspark_pipeline"))
        store_of_this_process(as_role(granted, "queenspark_pipeline"))
        while not api.read("/api/v1/messages", queue="doubled")["messages"]:
            pipeline.drain()
        rows = api.read("/api/v1/messages", queue="doubled")["messages"]
        assert sorted(row["data"]["n"] for row in rows) == [2, 4]


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("queenspark_broker", "CREATE TABLE queenspark.own (n int)"),
        ("queenspark_broker", "DROP TABLE queenspark.messages"),
        ("queenspark_broker", "DELETE FROM queenspark.migrations"),
        ("queenspark_broker", "UPDATE queenspark.audit SET caller = 'nobody'"),
        ("queenspark_pipeline", "SELECT * FROM queenspark.api_keys"),
        ("queenspark_pipeline", "SELECT * FROM queenspark.audit"),
        (
            "queenspark_pipeline",
            "INSERT INTO queenspark.api_keys (id, name, hash, created_by) VALUES ('', '', '', '')",
        ),
    ],
)
def test_rights_that_a_role_does_not_need_are_denied(granted: str, role: str, statement: str) -> None:
    with (
        psycopg.connect(as_role(granted, role), autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement.encode())


def test_a_role_that_may_not_migrate_is_told_to_use_the_owner(granted: str) -> None:
    url = as_role(granted, "queenspark_broker")
    assert migrate(url) == []
    with psycopg.connect(granted, autocommit=True) as connection:
        connection.execute("DELETE FROM queenspark.migrations WHERE name = '0012_access'")
    with pytest.raises(StoreError, match="run `queenspark migrate` as the owner"):
        migrate(url)
