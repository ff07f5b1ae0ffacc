"""The database queries of the streams query's source, and their timing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from queenspark.pipeline.streams.stream_source import StreamsOptions, StreamsReader
from queenspark.store.pipeline import News, PipelineStore
from tests.conftest import StartBroker
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

LIMIT = ReadMaxRows(1000)


@contextmanager
def pushing(url: str, queue: str) -> Iterator[list[int]]:
    """Push to a queue, one message after the other; the list counts them."""
    pushed: list[int] = []
    done = threading.Event()

    def push() -> None:
        with Api(url) as api:
            while not done.is_set():
                api.push(queue, len(pushed))
                pushed.append(len(pushed))

    thread = threading.Thread(target=push)
    thread.start()
    try:
        yield pushed
    finally:
        done.set()
        thread.join()


def test_pushes_to_queues_that_no_stream_reads_cost_the_pipeline_nothing(
    broker: StartBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = broker()
    asked: list[str] = []
    news = PipelineStore.news

    def counted(store: PipelineStore, run: str) -> News:
        asked.append(run)
        return news(store, run)

    monkeypatch.setattr(PipelineStore, "news", counted)
    with Api(own.url) as api:
        stream = StreamApi(api, own.database_url)
        stream.define(window_duration_ms=3_600_000)
        reader = StreamsReader(StreamsOptions(own.database_url, (0,), 1000))
        offset = reader.latestOffset(reader.initialOffset(), LIMIT)  # it has heard of the stream
        with pushing(own.url, "unread") as pushed:
            while len(pushed) < 30:
                asked.clear()
                before = len(pushed)
                assert reader.latestOffset(offset, LIMIT) == offset
                # When it begins to wait, and when the wait is over.
                assert len(asked) <= 2, f"asked {len(asked)} times during {len(pushed) - before} pushes"
        stream.push(1)
        assert reader.latestOffset(offset, LIMIT) != offset, "a queue that a stream reads"
        reader.stop()
        stream.close()
