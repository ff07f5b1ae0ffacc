"""Acks and pushes are atomic, even when responses are lost."""

import pytest

from queenspark import InDoubt, InvalidValue, Queen, TransactionRefused, Unreachable
from tests.client.conftest import sealed, stored
from tests.client.proxy import CUT_AFTER, CUT_BEFORE, Fault, Proxy
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

SOON = 10


@pytest.fixture
def out(queue: str) -> str:
    """The queue that results go to."""
    return f"{queue}-out"


def test_acks_and_pushes_happen_together(queen: Queen, queue: str, out: str, api: Api) -> None:
    queen.queue(queue).push([1, 2, 3])
    batch = queen.queue(queue).batch(9).pop(wait=SOON)
    step = queen.transaction().ack(batch[0]).ack(batch[1:]).queue(out).partition("p").push({"sum": 6})
    step.queue(f"{out}-2").push([1, 2], transaction_id=None).commit()
    assert stored(api, out) == [{"sum": 6}]
    assert stored(api, f"{out}-2") == [1, 2]
    assert batch.unacked == []
    assert len(queen.queue(queue).pop()) == 0


def test_a_refused_transaction_changes_nothing(queen: Queen, queue: str, out: str, api: Api) -> None:
    queen.queue(queue).create(lease_time=1)
    queen.queue(queue).push([1])
    slow = queen.queue(queue).pop(wait=SOON)
    queen.queue(queue).create(lease_time=30)
    other = queen.queue(queue).pop(wait=SOON)
    with pytest.raises(TransactionRefused, match="lease") as refused:
        queen.transaction().ack(slow).queue(out).push("late").commit()
    assert refused.value.code == "stale"
    assert stored(api, out) == []
    queen.transaction().ack(other).queue(out).push("once").commit()
    assert stored(api, out) == ["once"]


@pytest.mark.parametrize("fault", [CUT_AFTER, Fault(truncate=0), Fault(truncate=30), Fault(delay=30)])
def test_a_lost_response_is_retried_and_the_transaction_happens_once(
    far: Queen, proxy: Proxy, queue: str, out: str, api: Api, fault: Fault
) -> None:
    far.queue(queue).push(1)
    batch = far.queue(queue).pop(wait=SOON)
    proxy.fail("/transaction", fault)
    far.transaction().ack(batch).queue(out).push("result").commit()
    assert proxy.count("/transaction") == 2
    assert stored(api, out) == ["result"]
    assert batch.unacked == []
    assert len(far.queue(queue).pop()) == 0


def test_a_lost_request_is_sent_again(far: Queen, proxy: Proxy, queue: str, out: str, api: Api) -> None:
    far.queue(queue).push(1)
    batch = far.queue(queue).pop(wait=SOON)
    proxy.fail("/transaction", CUT_BEFORE, Fault(status=503), CUT_BEFORE)
    far.transaction().ack(batch).queue(out).push("result").commit()
    assert stored(api, out) == ["result"]


def test_commit_may_be_called_again_when_no_broker_responded(
    far: Queen, proxy: Proxy, queue: str, out: str, api: Api
) -> None:
    far.queue(queue).push(1)
    transaction = far.transaction().ack(far.queue(queue).pop(wait=SOON)).queue(out).push("result")
    proxy.fail("/transaction", CUT_AFTER, *[CUT_BEFORE] * 3)
    with pytest.raises(Unreachable) as unreachable:
        transaction.commit()
    assert unreachable.value.maybe_done
    transaction.commit()
    assert stored(api, out) == ["result"]


def test_pushes_alone_are_stored_once_too(far: Queen, proxy: Proxy, out: str, api: Api) -> None:
    proxy.fail("/transaction", CUT_AFTER)
    far.transaction().queue(out).push(["a", "b"]).commit()
    assert stored(api, out) == ["a", "b"]


def test_a_message_acked_before_refuses_the_transaction(
    far: Queen, proxy: Proxy, queue: str, out: str, api: Api
) -> None:
    """Otherwise the pushes would be silently missing."""
    far.queue(queue).push([1, 2])
    batch = far.queue(queue).batch(2).pop(wait=SOON)
    batch[0].ack()
    with pytest.raises(TransactionRefused) as refused:
        far.transaction().ack(batch).queue(out).push("result").commit()
    assert refused.value.code == "repeated"
    assert proxy.count("/transaction") == 0
    api.ack(
        {"transactionId": batch[1].transaction_id, "partitionId": batch[1].partition_id, "leaseId": batch.id}
    )
    with pytest.raises(TransactionRefused):
        far.transaction().ack(batch[1]).queue(out).push("result").commit()
    assert stored(api, out) == []


def test_an_ack_in_doubt_is_no_proof_that_a_transaction_happened(
    far: Queen, proxy: Proxy, queue: str, out: str, api: Api
) -> None:
    far.queue(queue).push(1)
    batch = far.queue(queue).pop(wait=SOON)
    proxy.fail("/ack", CUT_AFTER, *[CUT_BEFORE] * 3)
    with pytest.raises(Unreachable):
        batch.ack()
    assert batch[0].in_doubt
    proxy.fail("/transaction", CUT_BEFORE)
    with pytest.raises(InDoubt):
        far.transaction().ack(batch).queue(out).push("result").commit()
    assert stored(api, out) == []


def test_a_lost_response_and_an_expired_lease_are_in_doubt(
    far: Queen, proxy: Proxy, queue: str, out: str
) -> None:
    far.queue(queue).push(1)
    batch = far.queue(queue).group("g").pop(wait=SOON)
    proxy.fail("/transaction", CUT_AFTER, *[CUT_BEFORE] * 3)
    transaction = far.transaction().ack(batch).queue(out).push("result")
    with pytest.raises(Unreachable):
        transaction.commit()
    far.queue(queue).group("g").seek("beginning")
    with pytest.raises(InDoubt, match="unknown"):
        transaction.commit()


def test_a_window_is_acked_with_its_results(queen: Queen, stream: StreamApi, out: str, api: Api) -> None:
    sealed(stream, {"n": 1}, {"n": 2})
    window = queen.consumer(stream.name, "g").poll(wait=SOON)
    assert window is not None
    total = window.aggregate(sum="data.n")["sum"]
    queen.transaction().ack(window).queue(out).push({"sum": total}).commit()
    assert stored(api, out) == [{"sum": 3}]
    assert window.acked
    assert stream.empty()


def test_invalid_arguments_are_refused_before_anything_is_sent(far: Queen, proxy: Proxy) -> None:
    with pytest.raises(InvalidValue, match="transaction is empty"):
        far.transaction().commit()
    with pytest.raises(InvalidValue, match="push requires a queue"):
        far.transaction().push(1)
    assert proxy.requests == []


def test_a_transaction_pushes_with_headers(queen: Queen, queue: str) -> None:
    queen.transaction().queue(queue).push([1, 2], headers={"tenant": "north"}).commit()
    batch = queen.queue(queue).batch(9).pop(wait=SOON)
    assert {message.headers["tenant"] for message in batch} == {"north"}
