"""Messages as data: paths, groups, aggregates, tables."""

import math
import statistics
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenspark import InvalidValue, Message, Messages

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def messages(*payloads: Any) -> Messages[Message]:
    return Messages(
        Message(
            id=str(number), transaction_id=f"t{number}", queue="q", partition="p", data=data, created_at=NOW
        )
        for number, data in enumerate(payloads)
    )


def of(*values: Any) -> Messages[Message]:
    return messages(*({"v": value} for value in values))


def test_a_path_leads_through_objects_and_lists() -> None:
    found = messages(
        {"user": {"name": "anna"}, "items": [{"price": 3}, {"price": 5}]}, {"items": []}, 7, None
    )
    assert found.values("data.user.name") == ["anna"]
    assert found.values("data.items.1.price") == [5]
    assert found.values("data") == [*(each.data for each in found)]
    assert found.values("partition") == ["p"] * 4
    assert found.values("created_at") == [NOW] * 4


def test_nothing_at_a_path_is_not_null() -> None:
    assert messages({"v": None}, {}).values("data.v") == [None]


@pytest.mark.parametrize("path", ["", "user", "data.", "data..x", "id.x", ".data", "lease"])
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(InvalidValue, match="path is "):
        messages().values(path)


def test_filter_and_map_keep_the_order() -> None:
    found = of(3, 1, 2)
    assert found.filter(lambda message: message.data["v"] > 1).values("data.v") == [3, 2]
    assert found.map(lambda message: message.data["v"] * 2) == [6, 2, 4]
    assert len(found) == 3
    assert found[0].data == {"v": 3}


def test_27_zero_the_empty_text_and_false_are_real_keys_and_distinct() -> None:
    found = of(0, "", False, None, 0.0, "0", [], {}, [0], [False])
    groups = found.group_by("data.v")
    assert [(key, len(group)) for key, group in groups.items()] == [
        (0, 2), ("", 1), (False, 1), (None, 1), ("0", 1), ([], 1), ({}, 1), ([0], 1), ([False], 1),
    ]  # fmt: skip
    assert [type(key) for key in list(groups)[:3]] == [int, str, bool]
    assert groups[False].values("data.v") == [False]
    assert groups[0].values("data.v") == [0, 0.0]
    assert groups[[0]].values("data.v") == [[0]]
    assert True not in groups
    assert found.aggregate(distinct="data.v") == {"distinct": 9}


def test_27_messages_without_the_key_are_in_the_group_none() -> None:
    groups = messages({"v": 1}, {}, {"v": None}, 5).group_by("data.v")
    assert {key: len(group) for key, group in groups.items()} == {1: 1, None: 3}


def test_27_averages_are_over_numbers_only_and_booleans_are_none() -> None:
    found = messages({"v": 1}, {"v": 2.0}, {"v": True}, {"v": "9"}, {"v": None}, {}, 8)
    assert found.aggregate(count=True, sum="data.v", avg="data.v", min="data.v", max="data.v") == {
        "count": 7, "sum": 3.0, "avg": 1.5, "min": 1,
        "max": 2.0,
    }  # fmt: skip


def test_without_numbers_a_sum_is_zero_and_the_rest_is_none() -> None:
    for found in (messages(), of("x", True)):
        aggregates = found.aggregate(
            count=True, sum="data.v", avg="data.v", min="data.v", max="data.v", p50="data.v", p95="data.v",
            p99="data.v", distinct="data.v",
        )  # fmt: skip
        assert aggregates.pop("count") == len(found)
        assert aggregates.pop("sum") == 0
        assert aggregates.pop("distinct") == len(found)
        assert list(aggregates.values()) == [None] * 6


def test_several_paths_are_aggregated_at_once_and_nothing_else() -> None:
    found = messages({"a": 1, "b": 10}, {"a": 2, "b": 20})
    assert found.aggregate(sum=["data.a", "data.b"]) == {"sum": {"data.a": 3, "data.b": 30}}
    assert found.aggregate() == {}


def test_sums_of_whole_numbers_are_exact() -> None:
    assert of(2**60, 1, -(2**60)).aggregate(sum="data.v") == {"sum": 1}
    assert of(*[0.1] * 10).aggregate(sum="data.v") == {"sum": 1.0}


@given(st.lists(NUMBERS | st.booleans() | st.none() | st.text(), max_size=20))
def test_aggregates_are_those_of_the_numbers(values: list[Any]) -> None:
    numbers = [value for value in values if type(value) in (int, float)]
    aggregates = of(*values).aggregate(
        count=True, sum="data.v", avg="data.v", min="data.v", max="data.v", p50="data.v", distinct="data.v"
    )
    assert aggregates["count"] == len(values)
    assert aggregates["distinct"] == len({(type(value) is bool, value) for value in values})
    if not numbers:
        return
    assert aggregates["min"] == min(numbers)
    assert aggregates["max"] == max(numbers)
    if abs(sum(map(abs, numbers))) < 1e300:
        exact = sum(map(Fraction, numbers))
        assert math.isclose(aggregates["sum"], float(exact), rel_tol=1e-9, abs_tol=1e-6)
        assert math.isclose(aggregates["p50"], statistics.median(numbers), rel_tol=1e-9, abs_tol=1e-6)


def test_percentiles_lie_between_their_neighbours() -> None:
    found = of(*range(101))
    assert found.aggregate(p50="data.v", p95="data.v", p99="data.v") == {
        "p50": 50, "p95": 95, "p99": 99,
    }  # fmt: skip
    assert of(10, 20).aggregate(p95="data.v")["p95"] == pytest.approx(19.5)
    assert of(7).aggregate(p99="data.v") == {"p99": 7}


def test_a_table_has_a_column_for_each_field() -> None:
    table = messages({"user": "anna", "n": 1}, {"n": 2.5, "tags": ["x"]}).to_arrow()
    assert table.column_names == [
        "id", "transaction_id", "queue", "partition", "created_at", "data.user", "data.n", "data.tags",
    ]  # fmt: skip
    assert table["data.n"].to_pylist() == [1.0, 2.5]
    assert table["data.user"].to_pylist() == ["anna", None]
    assert table["created_at"].to_pylist() == [NOW, NOW]


def test_values_without_a_common_type_are_json_text() -> None:
    table = of(1, "x", True, None, {"a": [1]}).to_arrow()
    assert table["data.v"].to_pylist() == ["1", '"x"', "true", None, '{"a":[1]}']


def test_payloads_that_are_no_objects_have_a_column_of_their_own() -> None:
    table = messages(5, {"v": 1}, None, 6).to_arrow()
    assert table["data"].to_pylist() == [5, None, None, 6]
    assert table["data.v"].to_pylist() == [None, 1, None, None]


def test_frames_have_the_same_rows() -> None:
    found = of(1, 2)
    assert found.to_pandas()["data.v"].tolist() == [1, 2]
    frame = found.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["data.v"].to_list() == [1, 2]
    assert frame.height == 2


def test_no_messages_are_a_table_without_rows() -> None:
    assert messages().to_arrow().num_rows == 0
    assert messages().to_polars().height == 0
    assert len(messages().to_pandas()) == 0


@given(st.lists(JSON, max_size=6))
def test_every_payload_has_its_row_in_every_kind_of_table(payloads: list[Any]) -> None:
    found = messages(*payloads)
    assert found.to_arrow().num_rows == len(payloads)
    assert found.to_polars().height == len(payloads)
    assert len(found.to_pandas()) == len(payloads)


def with_headers(*headers: dict[str, str]) -> Messages[Message]:
    return Messages(
        Message(
            id=str(n), transaction_id=f"t{n}", queue="q", partition="p", data=n, created_at=NOW, headers=own
        )
        for n, own in enumerate(headers)
    )


def test_a_path_may_name_a_header() -> None:
    found = with_headers({"tenant": "north", "a.b": "1"}, {}, {"tenant": "north"})
    assert found.values("headers.tenant") == ["north", "north"]
    assert found.values("headers.a.b") == ["1"]
    assert len(found.group_by("headers.tenant")["north"]) == 2
    with pytest.raises(InvalidValue, match=r"path is 'headers'.*headers\.tenant"):
        found.values("headers")


def test_a_table_has_headers_when_a_message_has_some() -> None:
    table = with_headers({"tenant": "north"}, {}).to_arrow()
    assert table["headers"].to_pylist() == [[("tenant", "north")], []]
    assert "headers" not in with_headers({}).to_arrow().column_names
    assert with_headers({"tenant": "north"}).to_polars().height == 1


def test_payload_is_another_name_of_data() -> None:
    found = messages({"user": "anna", "n": 1}, {"user": "bert", "payload": {"n": 5}})
    assert found[0].payload is found[0].data
    assert found.values("payload.user") == ["anna", "bert"]
    assert found.values("payload") == found.values("data")
    assert found.aggregate(sum="payload.n") == {"sum": 1}
    assert found.values("data.payload.n") == [5]
