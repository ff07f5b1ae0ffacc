"""What /metrics/prometheus says of streams and of the pipeline."""

import time

from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import StartBroker
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

STATS = {
    "watermark_us": 1_500_000_000, "open_windows": 2, "records": 9, "windows": 4, "late": 3, "dropped": 2,
    "dead": 1,
}  # fmt: skip
EXPECTED = {
    "stream_watermark_seconds": 1500, "stream_open_windows": 2, "stream_records": 9,
    "stream_sealed_windows": 4, "stream_late_records": 3, "stream_dropped_records": 2,
    "stream_dead_records": 1,
    "stream_retention_held_seconds": 0, "pipeline_active": 1, "pipeline_input_rows_per_second": 300,
    "pipeline_processed_rows_per_second": 200, "pipeline_batch_seconds": 0.5,
    "pipeline_backpressure_ratio": 1.5,
}  # fmt: skip


def metrics(api: Api) -> dict[str, float]:
    return {
        sample.name.removeprefix("queenspark_"): sample.value
        for family in text_string_to_metric_families(api.get("/metrics/prometheus").text)
        for sample in family.samples
        if sample.labels in ({}, {"namespace": "tests", "stream": sample.labels.get("stream")})
    }


def test_streams_and_the_pipeline_are_measured(broker: StartBroker) -> None:
    own = broker(stats_interval_seconds=0.1)
    with Api(own.url) as api:
        stream = StreamApi(api, own.database_url)
        stream.define()
        stream.push(1)
        stream.seal(stats=[{"stream": stream.id, "version": 1, **STATS}])
        stream.run(
            "INSERT INTO queenspark.pipeline_stats (key, value) VALUES ('streams',"
            """ '{"inputRowsPerSecond": 300, "processedRowsPerSecond": 200, "batchSeconds": 0.5}')"""
        )
        stream.run("UPDATE queenspark.pipeline SET holder = 'me', expires_at = now() + interval '1 hour'")
        deadline = time.monotonic() + 20
        found: dict[str, float] = {}
        while time.monotonic() < deadline and found.get("pipeline_batch_seconds") != 0.5:
            found = metrics(api)
            time.sleep(0.05)
        assert {name: found.get(name) for name in EXPECTED} == EXPECTED
        assert found["stream_lag_seconds"] > 0
        number = stream.pipeline.bucket
        text = api.get("/metrics/prometheus").text
        assert f'queenspark_bucket_records{{bucket="{number}"}} 9.0' in text
        assert f'queenspark_bucket_sealed_windows{{bucket="{number}"}} 4.0' in text
        buckets = api.read("/api/v1/resources/streams/stats")["pipeline"]["buckets"]
        (mine,) = (bucket for bucket in buckets if bucket["bucket"] == number)
        assert (mine["records"], mine["openWindows"], mine["late"], mine["dropped"]) == (9, 2, 3, 2)
        pipeline = api.read("/api/v1/resources/streams/stats")["pipeline"]
        assert (pipeline["active"], pipeline["holder"]) == (True, "me")
        assert pipeline["query"]["batchSeconds"] == 0.5
        stream.close()
