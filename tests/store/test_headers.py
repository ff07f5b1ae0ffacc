"""Headers: they go where their message goes, and messages without any have none."""

import pytest

from queenspark.store.dead_letters import Filter
from queenspark.store.delivery import Ack, Batch
from queenspark.store.headers import MOST_HEADERS, MOST_VALUE, from_text, headers_fault, to_text
from queenspark.store.log import LogReader
from queenspark.store.position import BEGIN
from tests.store.desk import Desk, item, names

pytestmark = pytest.mark.anyio

HEADERS = {"tenant": "north", "odd": '\x01\x00\u2028 "quoted" ü'}


def headers_of(batch: Batch | None) -> list[dict[str, str] | None]:
    """The headers of each message of a batch."""
    return [] if batch is None else [from_text(message.headers) for message in batch.messages]


async def test_a_message_is_popped_with_its_own_headers(desk: Desk) -> None:
    pushed = [item("q", "a", headers=HEADERS), item("q", "b"), item("q", "c", headers={"n": "1"})]
    await desk.store.pusher.push(pushed)
    batch = await desk.pop()
    assert names(batch) == ["a", "b", "c"]
    assert headers_of(batch) == [HEADERS, None, {"n": "1"}]


async def test_messages_of_one_push_may_share_their_headers(desk: Desk) -> None:
    await desk.store.pusher.push([item("q", name, headers=HEADERS) for name in "abc"])
    assert headers_of(await desk.pop()) == [HEADERS] * 3


@pytest.mark.parametrize("headers", [None, {}])
async def test_a_message_without_headers_stores_none(desk: Desk, headers: dict[str, str] | None) -> None:
    await desk.store.pusher.push([item("q", "a", headers=headers)])
    await desk.store.pusher.push([item("q", "b", headers=headers), item("q", "c", headers={"x": "y"})])
    assert desk.run("SELECT headers FROM queenspark.messages ORDER BY transaction_id") == [
        (None,), (None,), ('{"x":"y"}',),
    ]  # fmt: skip


async def test_a_dead_letter_keeps_its_headers_when_it_is_put_back(desk: Desk) -> None:
    await desk.store.pusher.push([item("q", "a", headers=HEADERS)])
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status="dlq", error="broken")
    desk.run("DELETE FROM queenspark.messages")
    ((letter,), _) = await desk.store.dead_letters.find(Filter(queue="q"))
    assert from_text(letter["headers"]) == HEADERS
    await desk.store.dead_letters.put_back(Filter(queue="q"))
    assert headers_of(await desk.pop()) == [HEADERS]


async def test_the_copy_in_a_dead_letter_queue_has_the_headers(desk: Desk) -> None:
    await desk.configure(deadLetterQueue="graveyard")
    await desk.store.pusher.push([item("q", "a", headers=HEADERS)])
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status="dlq", error="broken")
    assert headers_of(await desk.pop(queue="graveyard")) == [HEADERS]


async def test_staged_messages_keep_their_headers(desk: Desk) -> None:
    await desk.store.maintenance.set_push(True)
    await desk.store.maintenance.stage([item("q", "a", headers=HEADERS), item("q", "b")])
    await desk.store.maintenance.set_push(False)
    assert headers_of(await desk.pop()) == [HEADERS, None]


async def test_a_transaction_pushes_with_headers(desk: Desk) -> None:
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    message = batch.messages[0]
    ack = Ack(message.partition_id, "in", "g", batch.lease_id, "completed", None)
    await desk.store.transactions.run([item("out", "a", headers=HEADERS)], [ack])
    assert headers_of(await desk.pop(queue="out")) == [HEADERS]


async def test_headers_are_not_encrypted(desk: Desk) -> None:
    await desk.configure(encryptionEnabled=True)
    await desk.store.pusher.push([item("q", "a", payload="4111", headers={"tenant": "north"})])
    ((payload, headers),) = desk.run("SELECT payload, headers FROM queenspark.messages")
    assert "4111" not in payload
    assert headers == '{"tenant":"north"}'
    assert headers_of(await desk.pop()) == [{"tenant": "north"}]


async def test_browsing_shows_headers(desk: Desk) -> None:
    await desk.store.pusher.push([item("q", "a", headers=HEADERS), item("q", "b")])
    rows, _ = await desk.store.messages.browse()
    found = {row["transaction_id"]: row["headers"] for row in rows}
    assert {name: from_text(text) for name, text in found.items()} == {"a": HEADERS, "b": None}


async def test_the_log_is_read_with_headers_when_asked(desk: Desk, database: str) -> None:
    await desk.store.pusher.push([item("q", "a", headers={"x": "1"}), item("q", "b")])
    with LogReader(database) as reader:
        ids, end = list(reader.queues(["q"]).values()), reader.frontier()
        (batch,) = reader.read(ids, BEGIN, end, payload=True, headers=True)
        assert batch.schema.names[-2:] == ["payload", "headers"]
        assert sorted(batch["headers"].to_pylist(), key=str) == [None, '{"x":"1"}']
        (bare,) = reader.read(ids, BEGIN, end, payload=False, headers=True)
        assert bare.schema.names == ["txid", "id", "queue_id", "partition", "created_us", "headers"]
        (without,) = reader.read(ids, BEGIN, end, payload=True)
        assert "headers" not in without.schema.names


async def test_a_batch_of_messages_with_large_headers_is_as_small_as_one_with_large_payloads(
    desk: Desk,
) -> None:
    large = {f"h{n}": "x" * MOST_VALUE for n in range(MOST_HEADERS)}
    await desk.store.pusher.push([item("q", headers=large) for _ in range(200)])
    batch = await desk.pop(1000)
    assert batch is not None
    assert 100 < len(batch.messages) < 150, "16 MB of headers of 128 KB each"


async def test_a_push_of_a_version_without_headers_leaves_none(desk: Desk) -> None:
    """It inserts without the column; so do its functions, which bury and stage messages."""
    await desk.store.catalog.resolve({("q", "p")})
    desk.run(
        "INSERT INTO queenspark.messages"
        " (txid, id, partition_id, created_at, queue_id, encrypted, transaction_id, trace_id, payload)"
        " SELECT pg_current_xact_id()::text::bigint, 7, p.id, clock_timestamp(), p.queue_id, false, 'old',"
        " NULL, '1' FROM queenspark.partitions p"
    )
    assert desk.run("SELECT headers FROM queenspark.messages") == [(None,)]
    batch = await desk.pop()
    assert batch is not None
    assert headers_of(batch) == [None]
    await desk.ack(batch, status="dlq", error="broken")
    ((letter,), _) = await desk.store.dead_letters.find(Filter(queue="q"))
    assert letter["headers"] is None


def test_headers_survive_their_stored_form() -> None:
    text = to_text(HEADERS)
    assert text is not None
    assert "\x01" not in text
    assert from_text(text) == HEADERS


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ({}, None),
        ({"n" * 255: "v" * 4096}, None),
        ({f"h{n}": "" for n in range(32)}, None),
        ({f"h{n}": "" for n in range(33)}, "has 33 entries; the limit is 32: put the rest into the payload"),
        ({"": "x"}, "has a name that must not be empty: ''"),
        ({"a\nb": "x"}, r"has a name that must not contain control characters: 'a\nb'"),
        (
            {"_event_time": "x"},
            "has the name '_event_time'; names that begin with _ are reserved: choose another",
        ),
        (
            {"a": "v" * 4097},
            "has a value of 4097 characters under 'a'; the limit is 4096: put it into the payload",
        ),
    ],
)
def test_a_fault_names_the_header_and_the_fix(headers: dict[str, str], fault: str | None) -> None:
    assert headers_fault(headers) == fault


def test_a_long_name_is_refused_with_its_length() -> None:
    fault = headers_fault({"n" * 256: "x"})
    assert fault is not None
    assert fault.startswith("has a name that is 256 characters long; the limit is 255: 'nnn")
