"""Rates of queues and groups: messages per second over the last minute, over all brokers."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest

from queenspark.broker.activity import Activity
from queenspark.store.database import Database
from queenspark.store.delivery import Ack, Acked
from queenspark.store.push import Item, Pushed
from queenspark.store.rates import Rate, Rates
from tests.conftest import StartBroker
from tests.database import connect
from tests.leader import leading
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api, Json, ack_operation, push_operation
from tests.wire.deadline import eventually

WITHIN = 20.0
"""Seconds; a broker reports every five."""


def of_queue(api: Api, queue: str) -> Json:
    """The rates of a queue in the list."""
    found = api.read("/api/v1/resources/queues", search=queue, windows="true")["queues"]
    rates: Json = next(each["rates"] for each in found if each["name"] == queue)
    return rates


def of_group(api: Api, queue: str, group: str) -> Json:
    """The rates of a group in the list."""
    found = api.read("/api/v1/consumer-groups", queue=queue)["consumerGroups"]
    rates: Json = next(each["rates"] for each in found if each["name"] == group)
    return rates


def is_moving(rates: Json) -> bool:
    return all(rate > 0 for rate in rates.values())


def test_pushes_pops_and_acks_have_rates(api: Api, queue: str) -> None:
    api.push(queue, *range(100))
    assert of_queue(api, queue).keys() == {"pushedPerSecond", "poppedPerSecond", "ackedPerSecond"}
    for group, share in (("all", 100), ("some", 10)):
        api.drain(queue, share, consumerGroup=group)
    eventually(lambda: is_moving(of_queue(api, queue)), within=WITHIN)
    eventually(lambda: is_moving(of_group(api, queue, "all")), within=WITHIN)
    # Of the same minute of the same broker.
    assert of_group(api, queue, "all")["ackedPerSecond"] == pytest.approx(
        10 * of_group(api, queue, "some")["ackedPerSecond"], rel=0.2
    )
    detail = api.read(f"/api/v1/resources/queues/{queue}")
    assert is_moving(detail["rates"])
    assert all(is_moving(group["rates"]) for group in detail["consumerGroups"])
    shown = api.read("/api/v1/consumer-groups/some")["queues"]
    assert is_moving(next(each["rates"] for each in shown if each["queue"] == queue))


def test_transactions_and_pops_that_ack_count_and_failures_do_not(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    (message,) = api.take(queue, consumerGroup="g")
    answer = api.transaction([ack_operation(message, consumerGroup="g"), push_operation(f"{queue}-out", 1)])
    assert answer["success"], answer
    assert api.take(queue, consumerGroup="careless", batch=2, autoAck="true")
    (message,) = api.take(queue, consumerGroup="failing")
    api.ack(message, "failed", consumerGroup="failing")
    eventually(lambda: is_moving(of_group(api, queue, "g")), within=WITHIN)
    eventually(lambda: of_queue(api, f"{queue}-out")["pushedPerSecond"] > 0, within=WITHIN)
    eventually(lambda: is_moving(of_group(api, queue, "careless")), within=WITHIN)
    eventually(lambda: of_group(api, queue, "failing")["poppedPerSecond"] > 0, within=WITHIN)
    assert of_group(api, queue, "failing")["ackedPerSecond"] == 0


def test_lists_are_sorted_by_rate(api: Api, queue: str) -> None:
    for number, count in enumerate((5, 50, 20)):
        api.push(f"{queue}-{number}", *range(count))
        api.drain(f"{queue}-{number}", count, consumerGroup=f"g-{queue}-{number}")

    def order(path: str, name: str, sort: str, search: str) -> list[str]:
        found = api.read(path, sort=sort, search=search)[name]
        return [each["name"][-1] for each in found]

    for sort in ("pushedPerSecond", "poppedPerSecond", "ackedPerSecond"):
        eventually(
            lambda sort=sort: (  # type: ignore[misc]
                order("/api/v1/resources/queues", "queues", f"-{sort}", queue) == ["1", "2", "0"]
                and order("/api/v1/resources/queues", "queues", sort, queue) == ["0", "2", "1"]
            ),
            within=WITHIN,
        )
    for sort in ("poppedPerSecond", "ackedPerSecond"):
        eventually(
            lambda sort=sort: (  # type: ignore[misc]
                order("/api/v1/consumer-groups", "consumerGroups", f"-{sort}", f"g-{queue}")
                == ["1", "2", "0"]
            ),
            within=WITHIN,
        )


def test_windows_of_the_pipeline_count_as_pushes(api: Api) -> None:
    with closing(StreamApi(api, api.database_url or "")) as stream:
        stream.define(partitioned=True)
        stream.seal(minute("k", 0))
        stream.ack(stream.poll("g"))
        stream.run(
            "INSERT INTO queenspark.stream_rates (stream_id, arriving, processed, sealed, late, backpressure)"
            " VALUES (%s, 1, 1, 2.5, 0, 1)",
            stream.id,
        )
        name = f"windows:{stream.namespace}/{stream.name}"
        with leading(api.database_url):
            assert of_queue(api, name)["pushedPerSecond"] == 2.5
            eventually(lambda: is_moving(of_queue(api, name)), within=WITHIN)
            (group,) = stream.resource(namespace=stream.namespace)["groups"]
            assert is_moving(group["rates"])
        # A pipeline that no longer leads reports nothing.
        assert of_queue(api, name)["pushedPerSecond"] == 0


def test_rates_are_summed_over_brokers_and_end_with_them(module_broker: StartBroker, queue: str) -> None:
    brokers = (module_broker(), module_broker())
    with Api(brokers[0].url) as one, Api(brokers[1].url) as other:
        one.push(queue, 1)
        other.push(queue, 1)
        with connect(brokers[0].database_url) as connection:

            def reported() -> int:
                statement = (
                    "SELECT count(*) FROM queenspark.queue_rates r"
                    " JOIN queenspark.queues q ON q.id = r.queue_id WHERE q.name = %s AND r.pushed > 0"
                )
                ((count,),) = connection.execute(statement, (queue,)).fetchall()
                return int(count)

            eventually(lambda: reported() == 2, within=WITHIN)
            # One that is not reported any more, of a broker that was killed.
            connection.execute(
                "INSERT INTO queenspark.queue_rates SELECT r.queue_id, r.group_id, 'killed', 1000, 0, 0,"
                " clock_timestamp() - interval '61 seconds' FROM queenspark.queue_rates r"
                " JOIN queenspark.queues q ON q.id = r.queue_id WHERE q.name = %s LIMIT 1",
                (queue,),
            )
            assert of_queue(one, queue)["pushedPerSecond"] < 1000
            eventually(lambda: reported() == 2, within=WITHIN)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def names_of(partition_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Partition 1 is of the queue q; others were deleted."""
    return {id_: ("p", "q") for id_ in partition_ids if id_ == 1}


def acks(*partition_ids: int, outcome: str = "completed") -> tuple[list[Any], list[Any]]:
    wanted = [Ack(id_, "t", "g", None, "completed", None) for id_ in partition_ids]
    return wanted, [Acked(outcome, 0, True, False)] * len(partition_ids)


@pytest.mark.anyio
async def test_a_rate_covers_a_minute_and_ends_with_zeros() -> None:
    clock = Clock()
    activity = Activity(names_of, clock)
    assert await activity.rates() == []
    results = [Pushed(1, 1, False)] * 10 + [Pushed(2, 1, True)]
    activity.pushed([Item("q")] * 11, results)
    activity.popped("q", "g", 20)
    activity.acked(*acks(1, 1, 1, 1, 1, 2))
    activity.acked(*acks(1, outcome="retry"))
    clock.now += 10
    assert sorted(await activity.rates(), key=str) == [Rate("q", "g", 0, 2, 0.5), Rate("q", None, 1, 0, 0)]
    for _ in range(5):
        clock.now += 10
        found = {(rate.queue, rate.group): rate for rate in await activity.rates()}
    assert found["q", None].pushed == pytest.approx(10 / 60, abs=0.01)
    assert await activity.rates() == []
    clock.now += 20
    assert {rate[2:] for rate in await activity.rates()} == {(0, 0, 0)}
    assert await activity.rates() == []


@pytest.mark.anyio
async def test_a_burst_after_the_start_is_no_endless_rate() -> None:
    clock = Clock()
    activity = Activity(names_of, clock)
    clock.now += 0.001
    activity.popped("q", "g", 10, auto_ack=True)
    assert await activity.rates() == [Rate("q", "g", 0, 2, 2)]


@pytest.mark.anyio
async def test_unchanged_rates_are_repeated_before_they_are_forgotten() -> None:
    clock = Clock()
    activity = Activity(names_of, clock)
    for _ in range(15):
        clock.now += 5
        await activity.rates()
    activity.popped("q", "g", 65)
    returned = []
    for _ in range(12):
        clock.now += 5
        returned.append(len(await activity.rates()))
    assert returned[0] == 1
    assert returned.count(1) < 6
    assert not any(sum(returned[at : at + 6]) == 0 for at in range(6))


@pytest.mark.anyio
async def test_rates_are_written_in_short_transactions(database: str) -> None:
    with connect(database) as connection:
        connection.execute(
            "INSERT INTO queenspark.queues (name) SELECT 'many-' || n FROM generate_series(1, 1000) n"
        )
        pool = Database(database)
        await pool.open()
        await Rates(pool).note("b", [Rate(f"many-{n}", None, n) for n in range(1, 1001)])
        await pool.close()
        found = connection.execute(
            "SELECT count(*), count(DISTINCT xmin::text), sum(pushed) FROM queenspark.queue_rates"
        )
        assert found.fetchall() == [(1000, 5, 500500)]
