"""Plans: on a large log, pop, discovery, ack and seek use indexes, and idle partitions cost nothing."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import sql

from queenspark.formats.window_message import LANE
from queenspark.store.log import SCANNED, between, branches
from queenspark.store.messages import CHECKED
from queenspark.store.position import Position
from queenspark.store.queries import query, written
from tests.database import connect
from tests.postgres_servers import PostgresServer

PARTITIONS = 100_000
MESSAGES = 1_000_000

FILL = """
    INSERT INTO queenspark.queues (name) VALUES ('large'), ('small');
    INSERT INTO queenspark.partitions (queue_id, name)
        SELECT 1, 'p' || n FROM generate_series(1, {partitions}) n;
    INSERT INTO queenspark.partitions (queue_id, name)
        SELECT 2, 'p' || n FROM generate_series(1, 100) n;
    INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
        SELECT n / 100, n, 1 + n % {partitions}, now() - interval '1 day' + n * interval '1 millisecond', 1,
               't' || n, '1'
        FROM generate_series(1, {messages}) n;
    INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
        SELECT n / 100, {messages} + n, {partitions} + 1 + n % 100, now(), 2, 't' || n, '1'
        FROM generate_series(1, 1000) n;
    INSERT INTO queenspark.groups (queue_id, name, start_txid, start_id, seen_txid, seen_id)
        SELECT id, 'g', 0, 0, {messages}, 0 FROM queenspark.queues;
    INSERT INTO queenspark.places (group_id, partition_id, cursor_txid, cursor_id, end_txid, end_id)
        SELECT g.id, p.id, {messages}, 0, {messages}, 0
        FROM queenspark.groups g JOIN queenspark.partitions p ON p.queue_id = g.queue_id;
    UPDATE queenspark.places
        SET available_at = now(), cursor_txid = 0, cursor_id = 0, end_txid = 0, end_id = 0
        WHERE partition_id IN (1, 2, 3, {partitions} + 1, {partitions} + 2, {partitions} + 3);
"""

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module", params=["postgres_18", "postgres_15"])
def large(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A log of a million messages in 100,000 partitions, three of them with work; and a queue of 100."""
    server: PostgresServer = request.getfixturevalue(request.param)
    with server.database() as url, connect(url) as connection:
        # Transaction ids of the made-up messages must lie below the horizon.
        connection.execute("UPDATE queenspark.system SET generation = 1")
        connection.execute(FILL.format(partitions=PARTITIONS, messages=MESSAGES))
        connection.execute("VACUUM ANALYZE")
        yield connection


class Read(NamedTuple):
    """The reads of a transaction on the large tables."""

    whole_tables: int
    rows: int
    buffers: int


COUNTS = """
    SELECT coalesce(sum(seq_scan), 0)::bigint, (
        SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(indexrelid)), 0)::bigint
        FROM pg_stat_user_indexes
        WHERE relname IN ('messages', 'places', 'partitions'))
    FROM pg_stat_xact_user_tables WHERE relname IN ('messages', 'places', 'partitions')
"""


def run(connection: Connection, statement: str, *params: Any) -> tuple[list[tuple[Any, ...]], Read]:
    """A statement's rows and reads; rolled back afterwards."""
    with connection.transaction(force_rollback=True):
        before = connection.execute(COUNTS).fetchone() or (0, 0)
        rows = connection.execute(statement, params).fetchall()
        after = connection.execute(COUNTS).fetchone() or (0, 0)
    with connection.transaction(force_rollback=True):
        ((plan,),) = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}", params
        ).fetchall()
    top = plan[0]["Plan"]
    buffers = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    return rows, Read(after[0] - before[0], after[1] - before[1], buffers)


LEASES = "ARRAY[gen_random_uuid(), gen_random_uuid(), gen_random_uuid()]"
POP = "SELECT * FROM pop(1, %s, %s, ARRAY[gen_random_uuid()], false)"


def test_a_pop_reads_its_batch_by_index(large: Connection) -> None:
    rows, read = run(large, POP, 10, 3)
    assert len(rows) == 10
    assert read.whole_tables == 0
    assert read.rows <= 40


def test_a_pop_of_one_message_each_reads_them_by_index(large: Connection) -> None:
    rows, read = run(large, f"SELECT * FROM pop(1, 1, 1, {LEASES}, false)")
    assert len({row[0] for row in rows}) == len({row[2] for row in rows}) == 3
    assert read.whole_tables == 0
    assert read.rows <= 20


def test_a_pop_that_finds_nothing_reads_next_to_nothing(large: Connection) -> None:
    with large.transaction(force_rollback=True):
        large.execute("UPDATE queenspark.places SET available_at = NULL WHERE partition_id <= 3")
        rows, read = run(large, POP, 10, 1)
    assert rows == []
    assert read.whole_tables == 0
    assert read.rows <= 10


def test_discovery_reads_new_messages_only(large: Connection) -> None:
    with large.transaction(force_rollback=True):
        large.execute("UPDATE queenspark.groups SET seen_txid = 9900, seen_id = 0 WHERE id = 1")
        ((count,),), read = run(large, "SELECT discover(1)")
    assert count == 10_000
    assert read.whole_tables == 0
    assert read.rows <= 3.2 * 10_000, "each new message, its partition and its place"


def test_polling_for_work_is_a_few_index_probes(large: Connection) -> None:
    _, read = run(large, "SELECT * FROM next_check(1)")
    assert read.whole_tables == 0
    assert read.rows <= 10


def test_an_ack_reads_its_messages_by_index(large: Connection) -> None:
    with large.transaction(force_rollback=True):
        large.execute("SELECT pop(1, 5, 1, '{00000000-0000-0000-0000-000000000001}', false)")
        ((partition_id, ids),) = large.execute(
            "SELECT partition_id, leased FROM queenspark.places WHERE lease_id IS NOT NULL"
        ).fetchall()
        statuses = "array_fill('completed'::text, ARRAY[%s])"
        rows, read = run(
            large,
            "SELECT * FROM ack(ARRAY[%s]::bigint[], '{g}', '{NULL}', '{1}', '{5}', %s::text[],"
            f" {statuses}, array_fill(NULL::text, ARRAY[5]), false)",
            partition_id,
            [f"t{id_}" for id_ in ids],
            len(ids),
        )
    assert [row[0] for row in rows] == ["completed"] * 5
    assert read.whole_tables == 0
    assert read.rows <= 30


def test_acks_of_several_places_read_their_messages_by_index(large: Connection) -> None:
    with large.transaction(force_rollback=True):
        taken = large.execute(f"SELECT * FROM pop(1, 1, 1, {LEASES}, false)").fetchall()
        rows, read = run(
            large,
            "SELECT * FROM ack(%s, '{g,g,g}', %s, '{1,2,3}', '{1,2,3}', %s,"
            " '{completed,completed,completed}', '{NULL,NULL,NULL}', false)",
            [row[2] for row in taken],
            [row[0] for row in taken],
            [row[8] for row in taken],
        )
    assert rows == [("completed", 0, True, True)] * 3
    assert read.whole_tables == 0
    assert read.rows <= 60


def test_a_seek_to_a_time_reads_from_the_sample_before_it(large: Connection) -> None:
    with large.transaction(force_rollback=True):
        large.execute(
            "INSERT INTO queenspark.looks SELECT created_at, txid, txid, created_at FROM queenspark.messages"
            " WHERE queue_id = 1 AND id % 10000 = 0 ON CONFLICT DO NOTHING"
        )
        ((time,),) = large.execute("SELECT created_at FROM queenspark.messages WHERE id = 905000").fetchall()
        ((txid, _),), read = run(large, "SELECT * FROM position_at(1, %s)", time)
    assert txid == 9050
    assert read.whole_tables == 0
    assert read.rows <= 10_000, "the rows between two safe-time samples, not the whole log"


def test_a_push_reads_its_own_partitions(large: Connection) -> None:
    """The guard of a push costs as much as its targets, independent of the total."""
    statement = query("push") % {
        "ids": "'1 2'", "partition_ids": "'7 8'", "queue_ids": "'1 1'", "transaction_ids": "E'x\\x01y'",
        "trace_ids": "E'\\x01'", "payloads": "E'1\\x012'", "encrypted": "'{}'", "partitions": "'{7,8}'",
        "queues": "'{1}'", "revisions": "'{1}'", "headers": "NULL",
    }  # fmt: skip
    rows, read = run(large, statement.replace("%(", "").replace(")s", "") + " RETURNING id")
    assert len(rows) == 2
    assert read.whole_tables == 0
    assert read.rows <= 10


def test_a_small_range_of_a_large_log_is_read_by_index(large: Connection) -> None:
    range_ = between(Position(5000, 0), Position(5009, 10**9))
    rows, read = run(
        large, written("log_read", {"queue_ids": [1, 2], **range_}, columns=sql.SQL(", m.payload"))
    )
    assert len(rows) == 1000
    assert read.buffers < 3500, "a few for each message's partition, none for the rest of the log"


def test_the_end_of_many_messages_is_found_in_the_index_alone(large: Connection) -> None:
    messages = branches([1, 2], Position(5000, 0), Position(9000, 10**9))
    with large.transaction(force_rollback=True):
        large.execute("SET LOCAL enable_seqscan = off")
        large.execute("SET LOCAL enable_bitmapscan = off")
        rows, read = run(large, written("log_nth", {"skip": 99_999}, branches=messages))
    assert len(rows) == 1
    assert read.whole_tables == 0
    assert read.rows <= 100_010
    assert read.buffers < 1000


def test_idle_partitions_add_no_cost_to_a_pop(large: Connection) -> None:
    """Cost in buffers, which do not depend on how busy the machine is."""
    pop = "SELECT * FROM pop(%s, 10, 1, ARRAY[gen_random_uuid()], false)"
    (_, many), (_, few) = run(large, pop, 1), run(large, pop, 2)
    assert many.buffers <= 2 * few.buffers


@pytest.mark.parametrize(
    ("partition", "first", "last", "count"), [("p6", 0, 1_000_000, 10), (None, 500, 501, 200)]
)
def test_the_records_of_a_window_are_read_by_index(
    large: Connection, partition: str | None, first: int, last: int, count: int
) -> None:
    page = "SELECT * FROM messages_between(1, %s, %s, 0, %s, 2000000, NULL, NULL, NULL)"
    whole = (
        "SELECT * FROM window_records('{1}', '{1}', ARRAY[%s]::bigint[], '{0}',"
        " ARRAY[%s]::bigint[], '{2000000}', ARRAY[%s]::text[], '{NULL}', '{NULL}')"
    )
    for statement, params in ((page, (partition, first, last)), (whole, (first, last, partition))):
        rows, read = run(large, statement, *params)
        assert len(rows) == count
        assert read.whole_tables == 0
        assert read.rows <= count + 10


@pytest.mark.parametrize(
    ("state", "count"), [(None, 20), ("waiting", 20), ("leased", 0), ("retrying", 0), ("dead", 0)]
)
def test_a_page_of_active_windows_costs_as_much_as_it_shows(
    large: Connection, state: str | None, count: int
) -> None:
    with large.transaction(force_rollback=True):
        large.execute(
            "UPDATE queenspark.places SET available_at = now() - interval '1 second',"
            " cursor_txid = 0, cursor_id = 0, end_txid = 0, end_id = 0 WHERE partition_id <= 20000"
        )
        rows, read = run(large, "SELECT * FROM active_windows(1, %s, 20)", state)
    assert len(rows) == count
    assert read.whole_tables == 0
    assert read.buffers < 200  # not rows: those include rolled-back rows of other tests


def test_a_scan_of_the_log_reads_each_message_once(large: Connection) -> None:
    messages = branches([1, 2], Position(5000, 0), Position(9000, 10**9), SCANNED)
    with large.transaction(force_rollback=True):
        large.execute("SET LOCAL enable_seqscan = off")
        large.execute("SET LOCAL enable_bitmapscan = off")
        ((txids, *_),), read = run(large, written("log_scan", {"limit": 10_000}, branches=messages))
    assert len(txids) == 8 * 10_000
    assert read.whole_tables == 0
    assert read.rows <= 10_010


BROWSED: dict[str, Any] = dict.fromkeys((
    "partition", "partition_id", "transaction_id", "namespace", "task", "from", "to", "visible",
))  # fmt: skip


@pytest.mark.parametrize(
    ("status", "count"),
    [("pending", 20), ("processing", 2), ("dead_letter", 1), ("completed", 20), (None, 20)],
)
def test_messages_of_a_state_are_found_without_reading_the_others(
    large: Connection, status: str | None, count: int
) -> None:
    scanned = 20 if status is None else CHECKED
    asked = {**BROWSED, "queue_id": 1, "status": status, "limit": 20, "offset": 0, "scanned": scanned}
    large.execute(
        "VACUUM queenspark.places, queenspark.messages"
    )  # remove the rows that other tests rolled back
    with large.transaction(force_rollback=True):
        large.execute("SELECT pop(1, 1, 1, ARRAY[gen_random_uuid(), gen_random_uuid()], false)")
        large.execute(
            "INSERT INTO queenspark.dead_letters"
            " (id, group_id, partition_id, txid, created_at, attempts, encrypted, transaction_id, error,"
            " payload)"
            " VALUES (777, 1, 778, 7, now(), 1, false, 't777', 'failed', '1')"
        )
        before = large.execute(COUNTS).fetchone() or (0, 0)
        rows = large.execute(query("browse_messages"), asked).fetchall()
        after = large.execute(COUNTS).fetchone() or (0, 0)
        statuses = [row[-1] for row in rows if row[1] is not None]
    assert len(statuses) == count
    assert status is None or set(statuses) == {status}
    assert after[0] == before[0], "no whole table is read"
    assert after[1] - before[1] <= 12 * scanned, "a few rows for each message that is checked"


WINDOWS = """
    INSERT INTO queenspark.queues (name) VALUES ('windows:n/s');
    INSERT INTO queenspark.partitions (queue_id, name)
        SELECT q.id, 'k' || n FROM queenspark.queues q, generate_series(1, {keys}) n
        WHERE q.name = 'windows:n/s';
    INSERT INTO queenspark.messages
        (txid, id, partition_id, created_at, queue_id, transaction_id, payload, window_end)
        SELECT n / 100, {messages} * 2 + n, p.id, now(), p.queue_id, 'w' || n, '1',
               timestamptz 'epoch' + n * interval '1 second'
        FROM generate_series(1, {windows}) n
        JOIN (SELECT id, queue_id, row_number() OVER (ORDER BY id) AS k FROM queenspark.partitions
              WHERE name LIKE 'k%') p ON p.k = 1 + n % {keys};
    ANALYZE queenspark.messages;
"""


@pytest.mark.parametrize(("search", "found"), [("p9999", 11), ("P100", 20), ("nowhere", 0)])
def test_a_search_of_keys_reads_a_bounded_number_of_them(large: Connection, search: str, found: int) -> None:
    """Those that begin with the text are among them, wherever they are."""
    asked = {"queue_id": 1, "search": search, "lane": None, "searched": 1000, "limit": 20, "offset": 0}
    with large.transaction(force_rollback=True):
        before = large.execute(COUNTS).fetchone() or (0, 0)
        rows = large.execute(query("find_stream_keys"), asked).fetchall()
        after = large.execute(COUNTS).fetchone() or (0, 0)
    assert after[0] == before[0], "no whole table is read"
    assert after[1] - before[1] <= 2 * 1000 + 10
    assert len(rows) == found
    assert all(search.lower() in row[0] for row in rows)


@pytest.mark.long
def test_the_timeline_reads_the_windows_that_it_shows(large: Connection) -> None:
    with large.transaction(force_rollback=True):
        large.execute(WINDOWS.format(keys=PARTITIONS, windows=1_000_000, messages=MESSAGES))
        chosen = large.execute("SELECT id FROM queenspark.queues WHERE name = 'windows:n/s'")
        ((queue_id,),) = chosen.fetchall()
        ids = [row[0] for row in large.execute(
            "SELECT id FROM queenspark.partitions WHERE queue_id = %s LIMIT 30", (queue_id,)
        ).fetchall()]  # fmt: skip
        asked: dict[str, Any] = {
            "partition_ids": ids, "from": "1970-01-01", "to": "1970-02-01", "limit": 200, "offset": 0,
            "queue_id": queue_id, "recent": 5000,
        }  # fmt: skip
        of_keys, of_lanes = [*range(30)], [number // 15 for number in range(30)]
        for name, most, keys, lane in (
            ("key_windows", 30 * 12, of_keys, None), ("key_windows", 30 * 12, of_lanes, None),
            ("stream_keys", 3 * 5000, [], None), ("stream_keys", 3 * 5000, [], LANE),
        ):  # fmt: skip
            before = large.execute(COUNTS).fetchone() or (0, 0)
            rows = large.execute(query(name), {**asked, "keys": keys, "lane": lane}).fetchall()
            after = large.execute(COUNTS).fetchone() or (0, 0)
            assert rows
            assert after[0] == before[0], f"{name} reads no whole table"
            assert after[1] - before[1] <= most + 100, name
