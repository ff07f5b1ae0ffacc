"""Rates of streams: arrivals versus processed records."""

import logging
from collections.abc import Iterator

import pytest

from queenspark.pipeline.streams import rates
from queenspark.pipeline.streams.rates import Late, StreamRates
from queenspark.pipeline.streams.sliding import Counts, Rates, Sliding, rates_of
from queenspark.pipeline.streams.streams_query import StreamsQuery
from queenspark.store.pipeline import PipelineStore
from tests.conftest import StartBroker
from tests.horizon import wait_for_horizon
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

STATS = {"watermark_us": 0, "open_windows": 0, "windows": 0, "late": 0, "dropped": 0, "dead": 0}


class Measuring:
    """A stream, and its rates by a clock that the test moves."""

    def __init__(self, stream: StreamApi, store: PipelineStore) -> None:
        self.stream = stream
        self.now = 0.0
        self.rates = StreamRates(store, lambda: self.now)

    def push(self, count: int) -> None:
        self.stream.api.push_items([{"queue": self.stream.queue, "payload": n} for n in range(count)])
        wait_for_horizon(self.stream.database_url)

    def process(self, count: int, **stats: int) -> None:
        row = {"stream": self.stream.id, "version": 1, **STATS, "records": count, **stats}
        self.stream.seal(stats=[row])

    def stored(self) -> Rates:
        """The rates as read by the brokers."""
        columns = ", ".join(Rates._fields)
        statement = f"SELECT {columns} FROM queenspark.stream_rates WHERE stream_id = %s"
        ((*row,),) = self.stream.run(statement, self.stream.id)
        return Rates(*row)


@pytest.fixture
def measuring(broker: StartBroker) -> Iterator[Measuring]:
    own = broker()
    with Api(own.url) as api, PipelineStore(own.database_url) as store:
        stream = StreamApi(api, own.database_url)
        stream.define(event_time="data.at", late="warn")
        yield Measuring(stream, store)
        stream.close()


def test_backpressure_rises_above_1_and_falls_again(measuring: Measuring) -> None:
    measuring.push(7)
    measuring.rates.measure()  # existing messages do not count as arrivals
    assert measuring.stored() == Rates()
    measuring.push(100)
    measuring.process(50)
    measuring.now = 10.0
    found = measuring.rates.measure()
    assert (found.pipeline.arriving, found.pipeline.processed) == (10.0, 5.0)
    assert found.pipeline.backpressure == measuring.stored().backpressure == 2.0
    measuring.process(150, windows=20)
    measuring.now = 20.0
    found = measuring.rates.measure()
    assert found.pipeline == measuring.stored() == Rates(5.0, 10.0, 1.0, 0.0, 0.5)
    assert found.buckets[measuring.stream.pipeline.bucket] == Rates(0.0, 15.0, 2.0, 0.0, 0.0)
    measuring.now = 90.0
    measuring.rates.measure()
    measuring.now = 160.0
    assert measuring.rates.measure().pipeline == measuring.stored() == Rates(), "a minute of silence"


def test_no_more_than_a_limit_of_messages_is_counted(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "_MOST_COUNTED", 30)
    monkeypatch.setattr(rates, "_LEAST_COUNTED", 10)
    measuring.rates.measure()
    measuring.push(100)
    measuring.now = 10.0
    assert measuring.rates.measure().pipeline.arriving == 3.0
    measuring.push(10)
    measuring.now = 20.0
    assert measuring.rates.measure().pipeline.arriving == 2.0, "it continues after the uncounted messages"


def test_late_records_are_told_once(measuring: Measuring) -> None:
    measuring.process(5, late=2)
    assert measuring.rates.measure().late == [], "they came before this pipeline led"
    measuring.process(5, late=3)
    stream = measuring.stream
    assert measuring.rates.measure().late == [Late(stream.namespace, stream.name, 3)]
    assert measuring.rates.measure().late == []


def test_warnings_of_late_records_go_to_the_log(
    measuring: Measuring, caplog: pytest.LogCaptureFixture
) -> None:
    query = StreamsQuery(measuring.stream.database_url, checkpoint="unused", max_rows=1)
    query.report([])
    measuring.process(5, late=3)
    with caplog.at_level(logging.WARNING, "queenspark.pipeline"):
        query.report([])
        query.report([])
    query.close()
    name = measuring.stream.name
    assert caplog.messages == [f"stream {name} in tests: 3 late records, after their windows were sealed"]


def test_rates_are_of_the_last_minute() -> None:
    sliding = Sliding(0.0, Counts())
    for second in range(1, 301):
        sliding.add(float(second), Counts(arrived=10 * second, processed=min(second, 240)))
    assert sliding.seconds == 60
    assert rates_of(sliding.counts, sliding.seconds) == Rates(arriving=10.0, backpressure=600.0)
