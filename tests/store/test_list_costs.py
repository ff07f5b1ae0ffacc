"""Lists cost as much as they show: their reads do not depend on the number of messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from queenspark.store.page import Page
from queenspark.store.queries import query
from queenspark.store.store import Store
from tests.database import connect
from tests.postgres_servers import PostgresServer

pytestmark = pytest.mark.anyio

QUEUES = 1000
PARTITIONS = 10  # of each queue
STREAMS = 100  # of the first queues

#: Groups have acked nothing of a third of the queues, half of another third, and all of the rest. The unacked
#: messages are discovered in every second queue.
FILL = """
    INSERT INTO queenspark.queues (name, namespace)
        SELECT 'q' || n, 'ns' || n % 10 FROM generate_series(1, {queues}) n;
    INSERT INTO queenspark.partitions (queue_id, name)
        SELECT q.id, 'p' || n FROM queenspark.queues q, generate_series(1, {partitions}) n ORDER BY q.id, n;
    INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
        SELECT n, n, 1 + n % ({queues} * {partitions}),
               now() - interval '1 hour' + n * interval '100 microseconds',
               1 + n % ({queues} * {partitions}) / {partitions}, 't' || n, '1'
        FROM generate_series(1, {messages}) n;
    INSERT INTO queenspark.groups (queue_id, name, start_txid, start_id, seen_txid, seen_id)
        SELECT q.id, g, 0, 0, CASE WHEN q.id % 2 = 0 THEN {messages} ELSE r.read END,
               CASE WHEN q.id % 2 = 0 THEN {messages} ELSE r.read END
        FROM queenspark.queues q
        CROSS JOIN LATERAL (SELECT ARRAY[0, {messages} / 2, {messages}] AS reads) x
        CROSS JOIN LATERAL (SELECT x.reads[1 + q.id % 3] AS read) r, unnest(ARRAY['g', 'h']) g;
    INSERT INTO queenspark.places
        (group_id, partition_id, available_at, cursor_txid, cursor_id, end_txid, end_id)
        SELECT g.id, p.id, CASE WHEN q.id % 2 = 0 AND r.read < {messages} THEN now() END,
               r.read, r.read, r.read, r.read
        FROM queenspark.groups g JOIN queenspark.queues q ON q.id = g.queue_id
        JOIN queenspark.partitions p ON p.queue_id = q.id
        CROSS JOIN LATERAL (SELECT (ARRAY[0, {messages} / 2, {messages}])[1 + q.id % 3] AS read) r;
    INSERT INTO queenspark.dead_letters
        (id, group_id, partition_id, txid, created_at, attempts, encrypted, transaction_id, error, payload)
        SELECT n, g.id, p.id, n, now(), 1, false, 't' || n, 'failed', '1'
        FROM queenspark.groups g
        CROSS JOIN LATERAL (SELECT p.id FROM queenspark.partitions p WHERE p.queue_id = g.queue_id LIMIT 1) p,
             generate_series(1, 20) n
        WHERE g.id % 10 = 0;
    INSERT INTO queenspark.queue_rates (queue_id, group_id, broker, pushed, popped, acked)
        SELECT q.id, 0, b, q.id, 0, 0 FROM queenspark.queues q, unnest(ARRAY['one', 'other']) b;
    INSERT INTO queenspark.queue_rates (queue_id, group_id, broker, pushed, popped, acked)
        SELECT g.queue_id, g.id, b, 0, g.id, g.id FROM queenspark.groups g, unnest(ARRAY['one', 'other']) b;
    INSERT INTO queenspark.queues (name) SELECT 'windows:n/s' || n FROM generate_series(1, {streams}) n;
    INSERT INTO queenspark.streams (namespace, name, queue_id, partitioned, lease_timeout_ms, version)
        SELECT 'n', 's' || n, q.id, true, 1000, 1 FROM generate_series(1, {streams}) n
        JOIN queenspark.queues q ON q.name = 'windows:n/s' || n;
    INSERT INTO queenspark.definitions (stream_id, version, body)
        SELECT s.id, 1, jsonb_build_object('sources', jsonb_build_array(
            jsonb_build_object('queue_id', s.id, 'txid', 0, 'id', 0))) FROM queenspark.streams s;
    INSERT INTO queenspark.stream_stats
        (stream_id, version, bucket, watermark_us, open_windows, open_txid, open_id)
        SELECT s.id, 1, b, s.id, 1, {messages} / 2, {messages} / 2
        FROM queenspark.streams s, generate_series(0, 1) b;
    INSERT INTO queenspark.progress (bucket, buckets, epoch, batch, state)
        SELECT b, 2, 1, 1, jsonb_build_object('txid', {messages} / 2, 'id', {messages} / 2, 'seq', 1000000)
        FROM generate_series(0, 1) b;
"""

Connection = psycopg.Connection[tuple[Any, ...]]


def fill(connection: Connection, messages: int) -> None:
    """A log of this many messages."""
    # Transaction ids of the made-up messages must lie below the horizon.
    connection.execute("UPDATE queenspark.system SET generation = 1")
    sizes = {"queues": QUEUES, "partitions": PARTITIONS, "messages": messages, "streams": STREAMS}
    connection.execute(FILL.format(**sizes))
    connection.execute("VACUUM ANALYZE")


@asynccontextmanager
async def counted(server: PostgresServer, messages: int) -> AsyncIterator[Store]:
    """A store over a log of this size, with everything counted."""
    with server.database() as url:
        with connect(url) as connection:
            fill(connection, messages)
        store = Store(url, pool_size=4)
        await store.open()
        while not await store.counts.run():
            pass
        with connect(url) as connection:
            connection.execute("ANALYZE")
        yield store
        await store.close()


PAGE = Page(100)
BY_SIZE = Page(100, sort="messages", descending=True)
BY_LAG = Page(100, sort="lag", descending=True)
BY_RATE = Page(100, sort="poppedPerSecond", descending=True)
BY_STREAM_LAG = Page(100, sort="lagSeconds", descending=True)
EVERYTHING = Page()
ALL = {"name": None, "namespace": None, "task": None, "windows": False}
STREAMED = {"namespace": None}
GROUPS = {"name": None, "queue": None, "queue_ids": None, "min_lag_seconds": None}
IDS = {"ids": list(range(1, 101)), "exact": 1000}
RATED = {"ids": list(range(1, 101)), "queue_ids": [(n + 1) // 2 for n in range(1, 101)]}

READS: dict[str, tuple[str, dict[str, Any], int]] = {
    # the statement, its parameters, and the maximum number of pages it may read
    "the totals": ("totals", {}, 6 * QUEUES),
    "how old the counts are": ("counting", {}, 5),
    "a page of the queues": ("list_queues", {**ALL, **PAGE.params()}, 6 * QUEUES),
    "all queues": ("list_queues", {**ALL, **EVERYTHING.params()}, 6 * QUEUES),
    "the largest queues": ("list_queues", {**ALL, **BY_SIZE.params()}, 6 * QUEUES),
    "the busiest queues": ("list_queues", {**ALL, **BY_RATE.params()}, 6 * QUEUES),
    "queues that a word finds": ("list_queues", {**ALL, **PAGE._replace(search="Q99").params()}, 6 * QUEUES),
    "the exact numbers of a page of queues": ("queues_now", IDS, 4500),
    "a page of the groups": ("list_groups", {**GROUPS, **PAGE.params()}, 6 * QUEUES),
    "the groups that lag most": ("list_groups", {**GROUPS, **BY_LAG.params()}, 6 * QUEUES),
    "the busiest groups": ("list_groups", {**GROUPS, **BY_RATE.params()}, 6 * QUEUES),
    "the rates of a page of queues": ("queue_rates", {"ids": list(range(1, 101))}, 1000),
    "the rates of a page of groups": ("group_rates", RATED, 1000),
    "the leases of a group": ("list_leases", {"group_ids": [1], "limit": 50, "offset": 0}, 100),
    "groups that are behind": ("list_groups", {**GROUPS, "min_lag_seconds": 60, **PAGE.params()}, 6 * QUEUES),
    "a page of the streams": ("list_streams", {**STREAMED, **PAGE.params()}, 10 * STREAMS),
    "the streams that lag most": ("list_streams", {**STREAMED, **BY_STREAM_LAG.params()}, 30 * STREAMS),
    "the progress of the streams": ("stream_state", {"ids": None}, 100 * STREAMS),
    "the namespaces": ("scopes", {"of": "namespace", **PAGE.params()}, 6 * QUEUES),
    "dead letters": ("count_dead_letters", {
        **dict.fromkeys(("queue", "group", "partition", "partition_id", "transaction_id", "from", "to")),
        "visible": None, "most": 10_000}, 500),
}  # fmt: skip


def pages(connection: Connection, name: str, params: dict[str, Any]) -> int:
    """Number of pages that a statement reads when it runs for the second time."""
    for _ in range(2):
        ((plan,),) = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {query(name)}", params
        ).fetchall()
    top = plan[0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


@pytest.fixture(scope="module", params=["postgres_18", "postgres_15"])
def server(request: pytest.FixtureRequest) -> PostgresServer:
    """Each PostgreSQL."""
    found: PostgresServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def sizes(full_size: bool) -> tuple[int, int]:
    """Messages of a small and of a large log."""
    return (100_000, 5_000_000) if full_size else (20_000, 100_000)


async def test_reads_scan_as_much_of_a_large_log_as_of_a_small_one(
    server: PostgresServer, sizes: tuple[int, int]
) -> None:
    read: dict[str, list[int]] = {}
    for messages in sizes:
        async with counted(server, messages) as store:
            with connect(store.database.url) as connection:
                for what, (name, params, _) in READS.items():
                    read.setdefault(what, []).append(pages(connection, name, params))
            # Their numbers are correct.
            totals = await store.counts.totals()
            assert (totals["queues"], totals["messages"]) == (QUEUES, messages)
            rows, total = await store.groups.page(EVERYTHING)
            assert total == 2 * QUEUES
            each = messages // QUEUES
            assert {row["lag"] for row in rows} == {0, each // 2, each}
            busiest, _ = await store.groups.page(BY_RATE)
            assert [row["id"] for row in busiest[:2]] == [2 * QUEUES, 2 * QUEUES - 1]
            rates = await store.rates.of_groups(busiest)
            assert rates[2 * QUEUES] == {"popped": 4 * QUEUES, "acked": 4 * QUEUES}
            assert (await store.rates.of_queues([7]))[7]["pushed"] == 14
    for what, (name, _, most) in READS.items():
        small, large = read[what]
        # The index of a larger log may be a level deeper: a page more for each lookup.
        more = 2 * STREAMS if name in ("list_streams", "stream_state") else 20
        assert large <= most, f"{what}: {read[what]} pages"
        if what != "the exact numbers of a page of queues":
            assert large <= small + more, f"{what}: {read[what]} pages"


RETURNED = """
    SELECT pg_stat_get_xact_tuples_returned(i.indexrelid) FROM pg_stat_user_indexes i
    WHERE i.indexrelname = %s
"""


async def test_an_idle_round_of_counting_reads_no_message(
    server: PostgresServer, sizes: tuple[int, int]
) -> None:
    async with counted(server, sizes[1]) as store:
        with connect(store.database.url) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert connection.execute("SELECT count_log(200000)").fetchone() == (True,)
            ((by_queue,),) = connection.execute(RETURNED, ("messages_log",)).fetchall()
            ((by_partition,),) = connection.execute(RETURNED, ("messages_partition",)).fetchall()
    assert by_queue <= 2 * QUEUES * 10, "the first messages that a group has not discovered"
    each = sizes[1] // QUEUES // PARTITIONS
    few = each if each <= 100 else 0
    assert by_partition <= 2 * QUEUES * PARTITIONS * (1 + few), (
        "the oldest message of each place, and few ahead"
    )
