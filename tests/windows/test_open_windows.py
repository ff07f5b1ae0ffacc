"""Open windows according to the log are those of the engine's state."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import strategies as st

from queenspark.windows import State, WindowSpec, open_windows
from tests.windows.engine_adapter import batches, engine, frame, window_spec
from tests.windows.oracle import Identity, Spec
from tests.windows.properties import run_property
from tests.windows.streams import MS, Clock, Input, inputs, specs


def remembered(spec: Spec) -> Spec:
    """No record is so late that it is dropped, or that its key was forgotten before."""
    return replace(spec, late="process", keep_us=10**12, aggregates=(), emit_empty=False)


def in_state(state: State, spec: Spec, stream: Identity) -> dict[tuple[str, int, int], int]:
    """The number of records of each open window of a stream: key, start and end."""
    tables = state.tables.get(window_spec(spec).to_json(), {})
    if "open" not in tables:
        return {}
    of_stream = (pl.col("stream") == stream[0]) & (pl.col("version") == stream[1])
    keys = tables["keys"].join(tables["streams"], on="g").filter(of_stream)
    windows = tables["open"].join(keys, on="k").group_by("key", "start", "end").agg(pl.col("count").sum())
    return {(key, start, end): count for key, start, end, count in windows.rows()}


@pytest.mark.parametrize("clock", ["event", "ingest"])
@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session"])
def test_they_are_those_that_the_engine_has_open(kind: str, clock: Clock, full_size: bool) -> None:
    def property_(input_: Input, most: int) -> None:
        [(records, safe_us)] = batches(input_.events, ())
        result = engine(input_.specs).advance(None, frame(records), safe_us)
        dues = []
        for stream, spec in input_.specs.items():
            mine = [record for record in records if (record.stream, record.version) == stream]
            time = "event_us" if clock == "event" else "created_us"
            log = frame(mine).select("key", "created_us", time_us=time).drop_nulls()
            if log.is_empty():
                continue
            found = open_windows(window_spec(spec), log, safe_us, most=1_000)
            rows = found.select("key", "start_us", "end_us", "records").rows()
            assert {(key, start, end): count for key, start, end, count in rows} == in_state(
                result.state, spec, stream
            )
            order = log["key"].unique(maintain_order=True).to_list()
            assert rows == sorted(rows, key=lambda row: (order.index(row[0]), row[1]))
            few = open_windows(window_spec(spec), log, safe_us, most=most)
            assert few.equals(found.group_by("key", maintain_order=True).head(most)), "those that end first"
            dues += found["due_us"].to_list()
        assert min(dues, default=None) == result.report.next_close_us

    subject = specs(kind, "final", clock=clock).map(remembered)
    run_property(
        400 if full_size else 10,
        property_,
        input_=inputs(subject, others=subject),
        most=st.integers(1, 4),
    )


@pytest.mark.parametrize("keys", [1, 10_000])
def test_the_work_is_bounded_by_the_requested_windows(keys: int) -> None:
    """Each of these records is in a billion windows."""
    spec = WindowSpec(kind="sliding", duration_us=10**12, slide_us=MS, clock="event")
    log = pl.DataFrame(
        {
            "key": [f"k{number % keys}" for number in range(10_000)],
            "created_us": [number * MS for number in range(10_000)],
            "time_us": [number * 7 * MS for number in range(10_000)],
        }
    )
    found = open_windows(spec, log, 0, most=3)
    assert found.height == 3 * keys
    assert open_windows(spec, log, 0, most=100).filter(pl.col("key") == "k0").head(3).equals(found.head(3))
