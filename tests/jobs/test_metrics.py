"""The metrics of jobs in /metrics/prometheus."""

from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import StartBroker
from tests.leader import LEAD
from tests.wire.api import Api
from tests.wire.deadline import eventually
from tests.wire.sql import FAILURE, Sql

STATS = (
    "INSERT INTO queenspark.stream_stats (stream_id, version, bucket, watermark_us, open_windows, records,"
    " windows, late, dropped, dead) VALUES (%s, 1, 0, 1500000000, 2, 9, 4, 3, 2, 1)"
)
RATES = (
    "INSERT INTO queenspark.stream_rates (stream_id, arriving, processed, sealed, late, backpressure)"
    " VALUES (%s, 30, 20, 2, 1, 1.5)"
)
EXPECTED = {
    "watermark_seconds": 1500, "open_windows": 2, "records_total": 9, "rows_total": 4,
    "late_records_total": 3, "dropped_records_total": 2, "dead_total": 1, "records_per_second": 20,
    "rows_per_second": 2, "retention_held_seconds": 0,
}  # fmt: skip


def measured(api: Api, job: str, namespace: str = "default") -> dict[str, float]:
    """The metrics of a job, without the prefix; those of its state with the state."""
    found = {}
    for family in text_string_to_metric_families(api.get("/metrics/prometheus").text):
        for sample in family.samples:
            labels = sample.labels
            if (labels.get("job_name"), labels.get("namespace")) == (job, namespace):
                state = f" {labels['state']}" if "state" in labels else ""
                found[sample.name.removeprefix("queenspark_job_") + state] = sample.value
    return found


def states(api: Api, job: str) -> set[str]:
    """The states that a job is in."""
    found = measured(api, job)
    return {name.removeprefix("state ") for name, value in found.items() if "state " in name and value}


def test_jobs_are_measured_and_temporary_ones_are_not(broker: StartBroker) -> None:
    own = broker(stats_interval_seconds=0.1)
    with Api(own.url, own.database_url) as api:
        sql = Sql(api)
        api.push("orders", {"country": "DE"})
        sql(
            "CREATE STREAM countries AS SELECT country FROM orders;"
            "CREATE STREAM shop.countries AS SELECT country FROM orders"
        )
        stream_id, _, _ = sql.stream("countries")
        sql.run(LEAD)
        sql.run(STATS, stream_id)
        sql.run(RATES, stream_id)
        eventually(lambda: measured(api, "countries").get("records_total") == 9)
        found = measured(api, "countries")
        assert {name: found.get(name) for name in EXPECTED} == EXPECTED
        assert found["lag_seconds"] > 0
        assert {name for name in found if name.startswith("state ")} == {
            "state running", "state paused", "state failed", "state finished",
        }  # fmt: skip
        assert states(api, "countries") == {"running"}
        assert measured(api, "countries", "shop")["records_total"] == 0
        sql("PAUSE JOB countries")
        eventually(lambda: states(api, "countries") == {"paused"})
        sql("RESUME JOB countries")
        sql.run(FAILURE, 0, 1, 1, "out of order", stream_id)
        eventually(lambda: states(api, "countries") == {"failed"})
        with sql.select("SELECT country FROM orders") as lines:
            next(lines)
            # Made after the SELECT: when it is measured, the SELECT was there too.
            sql("CREATE STREAM later AS SELECT country FROM orders")
            eventually(lambda: measured(api, "later"))
            assert "%select" not in api.get("/metrics/prometheus").text
        assert "# TYPE queenspark_job_records_total counter" in api.get("/metrics/prometheus").text
        sql("DROP STREAM countries")
        eventually(lambda: not measured(api, "countries"))
