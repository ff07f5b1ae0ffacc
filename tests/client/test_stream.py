"""A stream through the client: every setting, and its effect in the broker."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queenspark import InvalidValue, NotFound, Queen, Refused, Stream
from tests.client.conftest import sealed
from tests.client.proxy import CUT_AFTER, Proxy
from tests.streams.stream_api import StreamApi

SOON = 10


@pytest.fixture
def plain(queen: Queen, queue: str) -> Stream:
    """A stream over a queue, not yet defined."""
    queen.queue(queue).create()
    return queen.stream(f"s-{queue}", "tests").sources([queue])


def test_a_stream_has_the_defaults_of_the_broker(plain: Stream, queue: str) -> None:
    shown = plain.define().describe()
    wanted = {
        "name": plain.name, "namespace": "tests", "partitioned": False, "windowType": "tumbling",
        "windowDurationMs": 60_000, "windowGracePeriodMs": 30_000, "windowLeaseTimeoutMs": 60_000,
        "late": "process", "emitEmpty": False, "sourceQueues": [queue], "version": 1,
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("set_to", "wanted"),
    [
        (lambda s: s.partitioned(), {"partitioned": True}),
        (lambda s: s.partitioned().partitioned(False), {"partitioned": False}),
        (lambda s: s.tumbling_time(300), {"windowType": "tumbling", "windowDurationMs": 300_000}),
        (lambda s: s.tumbling_time("1h30m"), {"windowDurationMs": 5_400_000}),
        (lambda s: s.tumbling_time(timedelta(milliseconds=1500)), {"windowDurationMs": 1500}),
        (lambda s: s.sliding_time(60, "10s"),
         {"windowType": "sliding", "windowDurationMs": 60_000, "windowSlideMs": 10_000}),
        (lambda s: s.session("5m"), {"windowType": "session", "windowGapMs": 300_000}),
        (lambda s: s.count(100), {"windowType": "count", "windowSizeCount": 100}),
        (lambda s: s.count(100, slide=50), {"windowSizeCount": 100, "windowSlideCount": 50}),
        (lambda s: s.sliding_time(60, 10).count(5), {"windowType": "count", "windowSlideMs": None}),
        (lambda s: s.grace_period("5s"), {"windowGracePeriodMs": 5000}),
        (lambda s: s.grace_period(0), {"windowGracePeriodMs": 0}),
        (lambda s: s.lease_timeout(90), {"windowLeaseTimeoutMs": 90_000}),
        (lambda s: s.window_retention("1h"), {"windowRetentionMs": 3_600_000}),
        (lambda s: s, {"windowRetentionMs": None}),
        (lambda s: s.event_time("data.ts"), {"eventTime": "data.ts"}),
        (lambda s: s.event_time("data.ts").idle_timeout("1m"), {"idleTimeoutMs": 60_000}),
        (lambda s: s.late("warn"), {"late": "warn"}),
        (lambda s: s.late("drop"), {"late": "drop"}),
        (lambda s: s.emit_empty(), {"emitEmpty": True}),
        (lambda s: s.key("data.user", "data.kind"), {"key": ["data.user", "data.kind"]}),
        (lambda s: s.where("data.kind = 'buy'"), {"where": "data.kind = 'buy'"}),
        (lambda s: s.aggregate(n="count(*)").aggregate(last="last(data.kind)"),
         {"aggregates": {"n": "COUNT(*)", "last": "LAST(data.kind)"}}),
        (lambda s: s.aggregate(n="count(*)").having("n > 1"), {"having": "n > 1"}),
        (lambda s: s.columns(net="data.n").columns(who="upper(data.user)").key("who").aggregate(n="max(net)"),
         {"columns": {"net": "data.n", "who": "UPPER(data.user)"}, "key": ["who"]}),
        (lambda s: s.output("windows"), {"windowType": "tumbling"}),
        (lambda s: s.emit("changes"), {"emit": "changes"}),
        (lambda s: s.tumbling_time(5).rows(10),
         {"windowType": "rows", "windowSizeCount": 10, "windowDurationMs": None, "emit": "changes"}),
        (lambda s: s.start("latest"), {"version": 1}),
        (lambda s: s.start(datetime(2026, 1, 31, tzinfo=UTC)), {"version": 1}),
    ],
)  # fmt: skip
def test_a_setting_is_shown_by_the_broker(plain: Stream, set_to: Any, wanted: dict[str, Any]) -> None:
    shown = set_to(plain).define().describe()
    assert {name: shown[name] for name in wanted} == wanted


def test_a_setting_gives_a_new_stream_and_leaves_the_old_one(plain: Stream) -> None:
    short = plain.tumbling_time(5)
    long = short.tumbling_time(50)
    assert short.define().describe()["windowDurationMs"] == 5000
    assert long.define().describe()["version"] == 2


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ("duration", lambda s: s.tumbling_time("soon")),
        ("slide", lambda s: s.sliding_time(60, -1)),
        ("gap", lambda s: s.session(0.0001)),
        ("grace_period", lambda s: s.grace_period(True)),
        ("lease_timeout", lambda s: s.lease_timeout("x")),
        ("idle_timeout", lambda s: s.idle_timeout("x")),
        ("start", lambda s: s.start("tomorrow")),
        ("start", lambda s: s.start(datetime(2026, 1, 1))),  # noqa: DTZ001 - that is the point
        ("sources", lambda s: s.sources("orders")),
    ],
)
def test_invalid_options_are_named_and_nothing_is_sent(
    far: Queen, proxy: Proxy, argument: str, wrong: Any
) -> None:
    with pytest.raises(InvalidValue, match=f"^{argument} is "):
        wrong(far.stream("s").sources(["q"])).define()
    with pytest.raises(InvalidValue, match="sources is missing"):
        far.stream("s").define()
    assert proxy.requests == []


def test_a_stream_of_rows_is_the_job_of_its_queue(queen: Queen, plain: Stream, queue: str) -> None:
    queen.queue(queue).push({"user": "ann", "n": 5})
    rows = plain.columns(who="upper(data.user)").key("who").aggregate(n="sum(data.n)").count(2).output("rows")
    rows.define()
    (described,) = queen.sql(f"DESCRIBE tests.`{plain.name}`").results
    assert described.statement == (
        f"CREATE STREAM tests.`{plain.name}` AS SELECT UPPER(data.user) AS who, SUM(data.n) AS n,"
        f" window_start, window_end FROM `{queue}` GROUP BY UPPER(data.user) WINDOW COUNT(2)"
    )
    with pytest.raises(
        NotFound, match=f"emits rows, not windows: pop them from the queue tests.{plain.name}"
    ):
        rows.describe()
    queen.sql(f"DROP STREAM tests.`{plain.name}`")


def test_a_rejection_has_the_brokers_message(plain: Stream, queue: str) -> None:
    with pytest.raises(Refused, match="no-such-queue"):
        plain.sources([queue, "no-such-queue"]).define()
    with pytest.raises(Refused, match="slide"):
        plain.sliding_time(10, 60).define()


def test_a_definition_is_retried_when_its_response_is_lost_but_a_reset_is_not(
    far: Queen, proxy: Proxy, queue: str
) -> None:
    far.queue(queue).create()
    stream = far.stream(f"s-{queue}", "tests").sources([queue])
    proxy.fail("/define", CUT_AFTER)
    assert stream.define().describe()["version"] == 1
    proxy.fail("/define", CUT_AFTER)
    with pytest.raises(Exception, match="no broker at") as unreachable:
        stream.define(reset=True)
    assert unreachable.value.maybe_done  # type: ignore[attr-defined]
    assert stream.describe()["version"] == 2


def test_seek_brings_windows_again(queen: Queen, stream: StreamApi) -> None:
    first = sealed(stream, 1)
    consumer = queen.consumer(stream.name, "g")
    window = consumer.poll(wait=SOON)
    assert window is not None
    assert window.id == first
    window.ack()
    own = queen.stream(stream.name, stream.namespace)
    own.seek("g", "2020-01-01T00:00:00Z")
    again = consumer.poll(wait=SOON)
    assert again is not None
    assert again.id == first
    own.seek("g", datetime.now(UTC) + timedelta(days=1))
    assert consumer.poll(wait=0) is None
    with pytest.raises(InvalidValue, match="time is "):
        own.seek("g", "soon")


def test_late_and_dead_records_are_listed(queen: Queen, stream: StreamApi) -> None:
    ((late, dead)) = stream.push("late", "dead")
    position = {"stream": stream.id, "version": 1, "key": "p"}
    stream.pipeline.batch += 1
    stream.pipeline.push(
        late=[{**position, "txid": late.position[0], "id": late.position[1], "time_us": late.created_us,
               "closed_us": late.created_us + 1, "dropped": True}],
        dead=[{**position, "txid": dead.position[0], "id": dead.position[1]}],
    )  # fmt: skip
    own = queen.stream(stream.name, stream.namespace)
    assert [(found["key"], found["dropped"]) for found in own.late_messages()] == [("p", True)]
    assert [found["key"] for found in own.dead_messages(limit=1)] == ["p"]
    assert own.dead_messages(offset=1) == []


def test_a_deleted_stream_is_gone(plain: Stream, queen: Queen) -> None:
    plain.define()
    assert plain.delete()
    assert not plain.delete()
    with pytest.raises(NotFound):
        plain.describe()
    with pytest.raises(NotFound):
        queen.consumer(plain.name, "g").process(print)


def test_one_name_in_two_namespaces_is_two_streams(plain: Stream, queen: Queen, queue: str) -> None:
    plain.define()
    queen.stream(plain.name, "other").sources([queue]).tumbling_time(5).define()
    assert plain.describe()["windowDurationMs"] == 60_000
    with pytest.raises(Refused, match="namespace"):
        queen.consumer(plain.name, "g").poll(wait=0)
    assert queen.consumer(plain.name, "g", namespace="other").poll(wait=0) is None
