"""The last hour: gauges of the pipeline are sampled by the brokers."""

from tests.conftest import StartBroker
from tests.database import connect
from tests.leader import LEAD
from tests.wire.api import Api
from tests.wire.deadline import eventually


def test_the_state_of_the_streams_query_has_a_size_over_time(module_broker: StartBroker) -> None:
    broker = module_broker()
    with connect(broker.database_url) as connection:
        connection.execute(LEAD)
        connection.execute(
            "INSERT INTO queenspark.pipeline_stats (key, value)"
            """ VALUES ('streams', '{"batchSeconds": 0.5, "stateBytes": 7000000}')"""
        )
    with Api(broker.url) as api:

        def sizes() -> list[float]:
            return [step["stateBytes"] for step in api.read("/api/v1/series", seconds=60)["series"]]

        eventually(lambda: 7_000_000 in sizes(), within=30)
