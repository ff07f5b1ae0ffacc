"""Leadership: a leader keeps its lease while it pushes, and no takeover happens during a push."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from queenspark.store.pipeline import Leader, PipelineStore
from queenspark.store.queries import query
from tests.wire.deadline import eventually
from tests.wire.locks import waiting_for_a_lock

pytestmark = pytest.mark.every_postgres

SHORT = 0.2


@pytest.fixture
def store(database: str) -> Iterator[PipelineStore]:
    """A pipeline's store."""
    with PipelineStore(database) as store:
        yield store


@pytest.fixture
def push(database: str) -> Iterator[psycopg.Connection]:
    """A push in flight: it has checked the epoch."""
    with psycopg.connect(database) as connection:
        connection.execute("SET statement_timeout = '20s'")
        connection.execute(query("share_epoch"))
        yield connection


def test_a_leader_renews_its_lease_during_a_long_push(
    database: str, store: PipelineStore, push: psycopg.Connection
) -> None:
    push.rollback()
    first = store.lead("me", 60)
    push.execute(query("share_epoch"))
    found: list[Leader] = []
    renewal = threading.Thread(target=lambda: found.append(store.lead("me", 60)))
    renewal.start()
    renewal.join(10)
    assert found == [first], "the renewal waits for the push"


def test_no_takeover_happens_during_a_push(
    database: str, store: PipelineStore, push: psycopg.Connection
) -> None:
    push.rollback()
    first = store.lead("me", SHORT)
    push.execute(query("share_epoch"))
    with psycopg.connect(database, autocommit=True) as observer:
        over = "SELECT expires_at < clock_timestamp() FROM queenspark.pipeline"
        eventually(lambda: observer.execute(over).fetchone() == (True,))
        found: list[Leader] = []
        other = threading.Thread(target=lambda: found.append(store.lead("other", 60)))
        other.start()
        eventually(lambda: waiting_for_a_lock(observer))
        assert found == []
        push.commit()
        other.join(10)
    assert found == [Leader(first.epoch + 1, is_mine=True)]


def test_one_leads_at_a_time(store: PipelineStore) -> None:
    mine = store.lead("me", 60)
    assert mine.is_mine
    assert store.lead("me", 60) == mine
    assert store.lead("other", 60) == Leader(mine.epoch, is_mine=False)
    store.resign("me")
    assert store.lead("other", SHORT) == Leader(mine.epoch + 1, is_mine=True)


def test_a_lease_that_is_over_makes_a_new_epoch_also_for_its_holder(store: PipelineStore) -> None:
    """Another pipeline may have led in between."""
    first = store.lead("me", 0)
    assert store.lead("me", 60) == Leader(first.epoch + 1, is_mine=True)
