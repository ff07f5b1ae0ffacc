"""Which records belong to a version and to a window, and where one version takes over from another."""

from typing import Any

import polars as pl
import pytest

from queenspark.windows import WindowSpec
from queenspark.windows.membership import (
    Handover,
    Members,
    aligned,
    created_before,
    handover,
    is_counted_from,
    is_given_out,
    is_in_version,
    is_over,
)

MINUTE = 60_000_000
TUMBLING = WindowSpec(kind="tumbling", duration_us=MINUTE)
SLIDING = WindowSpec(kind="sliding", duration_us=10 * MINUTE, slide_us=4 * MINUTE)
SESSION = WindowSpec(kind="session", gap_us=MINUTE)
COUNT = WindowSpec(kind="count", size=3)


def chosen(rows: list[dict[str, Any]], expression: pl.Expr) -> list[bool]:
    schema = dict.fromkeys({name for row in rows for name in row}, pl.Int64)
    return pl.DataFrame(rows, schema=schema).select(expression).to_series().to_list()


@pytest.mark.parametrize(
    ("message", "is_member"),
    [
        ((5, 1, 0), False),  # where the source begins
        ((5, 2, 0), True),
        ((6, 0, 0), True),
        ((9, 9, 0), True),  # the last position
        ((9, 10, 0), False),
        ((10, 0, 0), False),
        ((6, 0, 99), True),
        ((6, 0, 100), False),
    ],
)
def test_a_version_has_the_records_between_its_ends(message: tuple[int, int, int], is_member: bool) -> None:
    row = dict(zip(("txid", "id", "created_us"), message, strict=True))
    ends = {"after_txid": 5, "after_id": 1, "until_txid": 9, "until_id": 9, "before_us": 100}
    assert chosen([{**row, **ends}], is_in_version()) == [is_member]


def test_a_version_without_an_end_goes_on() -> None:
    row = {"txid": 6, "id": 0, "created_us": 10**18, "after_txid": 5, "after_id": 1}
    assert chosen([{**row, "until_txid": None, "until_id": None, "before_us": None}], is_in_version()) == [
        True
    ]


def test_a_version_gives_out_windows_from_its_beginning_up_to_its_end() -> None:
    rows = [{"start_us": start, "from_us": 10, "until_us": 20} for start in (9, 10, 19, 20)]
    assert chosen(rows, is_given_out()) == [False, True, True, False]
    assert chosen([{"start_us": 5, "from_us": None, "until_us": None}], is_given_out()) == [True]


def test_counting_goes_on_at_a_position() -> None:
    rows = [{"txid": 5, "id": id_, "from_txid": 5, "from_id": 2} for id_ in (1, 2, 3)]
    assert chosen(rows, is_counted_from()) == [False, True, True]
    assert chosen([{"txid": 5, "id": 1, "from_txid": None, "from_id": None}], is_counted_from()) == [True]


def test_a_version_is_over_when_its_last_window_can_no_longer_change() -> None:
    kept = TUMBLING.duration + TUMBLING.idle + TUMBLING.keep
    assert not is_over(TUMBLING, None, 10**18)
    assert not is_over(TUMBLING, 0, kept)
    assert is_over(TUMBLING, 0, kept + 1)


def test_the_clock_tells_the_last_record_of_windows_by_ingest_time_only() -> None:
    assert created_before(TUMBLING, 5 * MINUTE) == 6 * MINUTE
    assert created_before(TUMBLING, None) is None
    assert created_before(SESSION, 5 * MINUTE) is None
    assert created_before(WindowSpec(kind="tumbling", duration_us=1, clock="event"), 5) is None


NOW = 1000 * MINUTE + 7


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (TUMBLING, COUNT, Handover(by_position=True)),
        (COUNT, SESSION, Handover(by_position=True)),
        (TUMBLING, SESSION, Handover(until_us=1001 * MINUTE)),
        (SESSION, TUMBLING, Handover(until_us=NOW, from_us=1000 * MINUTE, reads_from_us=NOW - MINUTE)),
        (
            TUMBLING,
            SLIDING,
            Handover(until_us=1001 * MINUTE, from_us=1000 * MINUTE, reads_from_us=991 * MINUTE),
        ),
    ],
)
def test_a_new_version_takes_over_at_a_boundary(old: WindowSpec, new: WindowSpec, expected: Handover) -> None:
    assert handover(old, new, NOW) == expected


def test_times_are_aligned_down_to_the_grid() -> None:
    assert aligned(SLIDING, 9 * MINUTE) == 8 * MINUTE
    assert aligned(SESSION, 9 * MINUTE + 1) == 9 * MINUTE + 1


def test_windows_by_ingest_time_have_the_records_created_in_them() -> None:
    members = Members.of(TUMBLING, None, True, "k", (0, MINUTE))
    assert (members.partition, members.created, members.leaves_out) == ("k", (0, MINUTE), False)
    assert members.contain([(1, 1)], ["{}"], ()) == [True]


def test_windows_by_event_time_have_the_records_with_times_in_them() -> None:
    members = Members.of(TUMBLING, "at", False, "__GLOBAL__", (1_000_000, 2_000_000))
    assert (members.partition, members.created) == (None, None)
    payloads = ['{"at": 999}', '{"at": 1000}', '{"at": 1999}', '{"at": 2000}', "{}"]
    assert members.contain([(1, n) for n in range(5)], payloads, ()) == [False, True, True, False, False]


def test_count_windows_have_all_records_with_a_time() -> None:
    members = Members.of(COUNT, "at", True, "k", (0, 0))
    assert members.contain([(1, 1), (1, 2)], ['{"at": 5}', "{}"], ()) == [True, False]
    assert Members.of(COUNT, None, True, "k", (0, 0)).created is None


def test_sessions_exclude_dropped_records() -> None:
    members = Members.of(SESSION, None, True, "k", (0, MINUTE))
    assert members.leaves_out
    assert members.contain([(1, 1), (1, 2)], ["{}", "{}"], {(1, 2)}) == [True, False]
