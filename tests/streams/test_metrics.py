"""The metrics of streams and the pipeline in /metrics/prometheus."""

import time

from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import StartBroker
from tests.leader import LEAD
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

STATS = {
    "watermark_us": 1_500_000_000, "open_windows": 2, "records": 9, "windows": 4, "late": 3, "dropped": 2,
    "dead": 1,
}  # fmt: skip
EXPECTED = {
    "stream_watermark_seconds": 1500, "stream_open_windows": 2, "stream_records_total": 9,
    "stream_sealed_windows_total": 4, "stream_late_records_total": 3, "stream_dropped_records_total": 2,
    "stream_dead_records_total": 1, "stream_arriving_per_second": 30, "stream_processed_per_second": 20,
    "stream_sealed_per_second": 2, "stream_backpressure_ratio": 1.5,
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
            """ '{"inputRowsPerSecond": 300, "processedRowsPerSecond": 200, "batchSeconds": 0.5,"""
            """   "backpressure": 1.5,"""
            """   "batchSecondsHistogram": {"bounds": [0.5, 1], "counts": [2, 3, 1], "sum": 7.5}}')"""
        )
        stream.run(
            "INSERT INTO queenspark.stream_rates (stream_id, arriving, processed, sealed, late, backpressure)"
            " VALUES (%s, 30, 20, 2, 1, 1.5)",
            stream.id,
        )
        stream.run(LEAD)
        deadline = time.monotonic() + 20
        found: dict[str, float] = {}
        while time.monotonic() < deadline and found.get("pipeline_batch_seconds") != 0.5:
            found = metrics(api)
            time.sleep(0.05)
        assert {name: found.get(name) for name in EXPECTED} == EXPECTED
        assert found["stream_lag_seconds"] > 0
        number = stream.pipeline.bucket
        text = api.get("/metrics/prometheus").text
        assert f'queenspark_bucket_records_total{{bucket="{number}"}} 9.0' in text
        assert f'queenspark_bucket_sealed_windows_total{{bucket="{number}"}} 4.0' in text
        assert "# TYPE queenspark_stream_records_total counter" in text
        batches = "queenspark_pipeline_batch_duration_seconds"
        assert f'{batches}_bucket{{le="1.0",query="streams"}} 5.0' in text
        assert f'{batches}_bucket{{le="+Inf",query="streams"}} 6.0' in text
        assert f'{batches}_sum{{query="streams"}} 7.5' in text
        buckets = api.read("/api/v1/resources/streams/stats")["pipeline"]["buckets"]
        (mine,) = (bucket for bucket in buckets if bucket["bucket"] == number)
        assert (mine["records"], mine["openWindows"], mine["late"], mine["dropped"]) == (9, 2, 3, 2)
        pipeline = api.read("/api/v1/resources/streams/stats")["pipeline"]
        assert (pipeline["active"], pipeline["holder"]) == (True, "me")
        assert pipeline["query"]["batchSeconds"] == 0.5
        assert pipeline["queries"]["streams"] == pipeline["query"]
        (mine,) = api.read("/api/v1/resources/streams/stats")["byStream"]
        assert mine["rates"] == {
            "arrivingPerSecond": 30, "processedPerSecond": 20, "sealedPerSecond": 2, "latePerSecond": 1,
            "backpressure": 1.5,
        }  # fmt: skip
        stream.close()


def test_the_delay_from_seal_to_first_delivery_is_a_histogram(broker: StartBroker) -> None:
    own = broker()
    with Api(own.url) as api:
        stream = StreamApi(api, own.database_url)
        stream.define()
        stream.seal(minute("a", 1), minute("b", 1))
        one, two = stream.poll("g"), stream.poll("g")
        assert one["id"] != two["id"]
        stream.ack(one, success=False)
        stream.end_waits()
        assert stream.poll("g")["id"] == one["id"], "delivered again, which does not count"
        found = metrics(api)
        assert found["stream_delivery_delay_seconds_count"] == 2
        assert 0 < found["stream_delivery_delay_seconds_sum"] < 60
        stream.close()
