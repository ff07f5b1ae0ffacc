"""The state of a bucket comes back as it was, after batches that fail, in processes that know it or not."""

from copy import deepcopy
from typing import Any, cast

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from queenspark.pipeline.streams import bucket_state
from queenspark.pipeline.streams.bucket_state import BucketState
from queenspark.windows import State
from tests.pipeline.streams.local import Store

BUCKET = 3


def table(first: int, count: int) -> pl.DataFrame:
    return pl.DataFrame({"n": pl.int_range(first, first + count, eager=True)})


def on(store: Store) -> BucketState:
    return BucketState(cast(StatefulProcessorHandle, store))


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3_000),  # rows that come
        st.integers(0, 1_500),  # rows that go
        st.booleans(),  # whether the batch fails
        st.sampled_from(["this", "this", "another", "new"]),  # process
    ),
    min_size=1,
    max_size=70,
)


@given(STEPS)
@settings(deadline=None, max_examples=60)
def test_saved_state_is_loaded_after_any_failure_in_any_process(
    steps: list[tuple[int, int, bool, str]],
) -> None:
    store = Store()
    processes: dict[str, dict[int, Any]] = {"this": {}, "another": {}}
    saved: State | None = None
    rows = table(0, 0)
    for number, (come, go, fails, process) in enumerate(steps):
        bucket_state._remembered = processes.get(process, {})
        before = on(store).load(BUCKET)
        assert (before is None) == (saved is None)
        if before is not None and saved is not None:
            assert before.since(saved) is None
        after = State({"spec": {"open": pl.concat([rows.slice(go), table(number * 10_000, come)])}})
        kept = deepcopy((store.value, store.map))
        on(store).save(BUCKET, before, after, {})
        if fails:
            store.value, store.map = kept
        else:
            saved, rows = after, after.tables["spec"]["open"]


def test_the_parts_stay_few_and_small() -> None:
    store = Store()
    bucket_state._remembered = {}
    rows, before = table(0, 50_000), None
    for number in range(200):
        rows = pl.concat([rows, table(100_000 + number, 1)])
        on(store).save(BUCKET, before, State({"spec": {"open": rows}}), {})
        before = on(store).load(BUCKET)
        assert len(store.map) <= bucket_state._MOST_PARTS + 1
    assert len(store.written) == 200
    assert sum(size > 5_000 for size in store.written) <= 5


def test_nothing_new_writes_nothing() -> None:
    store = Store()
    bucket_state._remembered = {}
    state = State({"spec": {"open": table(0, 5_000)}})
    on(store).save(BUCKET, None, state, {})
    kept = deepcopy((store.value, store.map))
    on(store).save(BUCKET, on(store).load(BUCKET), state, {})
    assert (store.value, store.map) == kept
