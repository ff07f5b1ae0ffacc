"""Problems that need attention, the last hour, and the system, as shown by brokers."""

import psycopg
import pytest

from tests.conftest import StartBroker
from tests.wire.api import Api, Json
from tests.wire.deadline import eventually
from tests.wire.sql import FAILURE, Sql


@pytest.fixture
def api(broker: StartBroker, database: str) -> Api:
    return Api(broker(stats_interval_seconds=0.2, encryption_key="A" * 43 + "=").url, database)


def codes(api: Api) -> dict[str, Json]:
    return {item["code"]: item for item in api.read("/api/v1/attention")["attention"]}


def run(api: Api, statement: str) -> None:
    with psycopg.connect(api.database_url or "", autocommit=True) as connection:
        connection.execute(statement)


def test_it_lists_problems_and_nothing_while_healthy(api: Api) -> None:
    with api:
        api.push("orders", {"amount": 1})
        assert codes(api) == {}
        sql = Sql(api)
        sql("CREATE STREAM one AS SELECT amount FROM orders; CREATE STREAM two AS SELECT amount FROM orders")
        sql("PAUSE JOB one")
        sql.run(FAILURE, 0, 0, 0, "it broke\nsomewhere", sql.stream("two")[0])
        api.take("orders", consumerGroup="mail")
        run(
            api,
            "UPDATE queenspark.messages SET created_at = created_at - interval '5 minutes';"
            " UPDATE queenspark.places SET acked_at = clock_timestamp() - interval '4 minutes 10 seconds'",
        )
        eventually(lambda: "group_silent" in codes(api))
        found = codes(api)
        assert found["no_pipeline"]["severity"] == "error"
        assert found["job_failed"]["text"] == "Job two has failed: it broke"
        assert (found["job_paused"]["text"], found["job_paused"]["severity"]) == (
            "Job one is paused.",
            "notice",
        )
        silent = found["group_silent"]
        assert silent["text"] == "Group mail of orders has not acked anything for 4 minutes; 1 message waits."
        assert (silent["kind"], silent["name"]) == ("queue", "orders")
        order = [item["severity"] for item in api.read("/api/v1/attention")["attention"]]
        assert order == sorted(order, key=["error", "warning", "notice"].index)


def test_a_transaction_that_holds_the_log_back_is_named(api: Api) -> None:
    with api, psycopg.connect(api.database_url or "", application_name="somebody") as connection:
        connection.execute("SELECT pg_current_xact_id()")
        eventually(lambda: "open_transaction" in codes(api), within=30)
        found = codes(api)["open_transaction"]
        assert found["text"].startswith("A transaction of somebody (pid ")
        assert "has held back the horizon for 1" in found["text"]


def test_the_last_hour_sums_all_brokers(api: Api, broker: StartBroker, database: str) -> None:
    with api, Api(broker(database_url=database).url, database) as other:
        for each in (api, other):
            each.push("q", *range(50))

        def pushed() -> float:
            steps = api.read("/api/v1/series", seconds=60)["series"]
            return float(sum(step["pushedPerSecond"] * 5 for step in steps))

        run(
            api,
            "INSERT INTO queenspark.samples SELECT"
            " date_bin('5 seconds', clock_timestamp() - interval '30 s', 'epoch'), 'before',"
            " 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
        )
        eventually(lambda: round(pushed()) == 100, within=30)
        assert len(api.read("/api/v1/system")["brokers"]) == 2


def test_secrets_are_not_among_the_settings(broker: StartBroker) -> None:
    started = broker(
        encryption_key="A" * 43 + "=",
        url="http://me:hunter2@127.0.0.1:6632",
        jwt_jwks_url="https://me:hunter2@id.example/jwks.json",
    )
    with Api(started.url) as api:
        text = api.get("/api/v1/system").text
        settings = {each["name"]: each for each in api.read("/api/v1/system")["settings"]}
    assert settings["QUEENSPARK_ENCRYPTION_KEY"]["value"] == "set, not shown"
    assert settings["QUEENSPARK_DATABASE_URL"]["value"] == "set, not shown"
    assert settings["QUEENSPARK_URL"]["value"] == "http://…@127.0.0.1:6632"
    assert settings["QUEENSPARK_JWT_JWKS_URL"]["value"] == "https://…@id.example/jwks.json"
    assert settings["QUEENSPARK_POOL_SIZE"] == {
        "name": "QUEENSPARK_POOL_SIZE", "value": 16, "isDefault": True,
        "about": "maximum number of database connections per broker",
    }  # fmt: skip
    assert "AAAAAAAA" not in text
    assert "hunter2" not in text
    assert "postgresql://" not in text
