"""Computed columns: other expressions of a definition use them by name."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import StartBroker
from tests.streams.computing import MINUTE_MS, Computing, at, by_key

NET = {"net": "data.n * 2", "who": "upper(data.user)"}
BY_WHO: dict[str, Any] = {
    "columns": NET, "key": ["who"], "where": "net > 2", "aggregates": {"total": "sum(net)"},
    "event_time": "data.at", "window_duration_ms": MINUTE_MS,
}  # fmt: skip


@pytest.fixture(scope="module")
def running(module_broker: StartBroker) -> Iterator[Computing]:
    """A broker and a pipeline for all tests of the file."""
    broker = module_broker()
    system = Computing(broker.url, broker.database_url)
    yield system
    system.close()


@pytest.fixture
def computing(running: Computing) -> Iterator[Computing]:
    """Names of the test's own, and records of two users in one minute."""
    running.begin()
    running.push(rec(0, "ann", 1), rec(1, "Bob", 5), rec(2, "Ann", 2), rec(3, "ANN", 4), rec(4, "bob", 6))
    yield running
    running.forget()


def rec(second: float, user: str | None, n: float) -> dict[str, Any]:
    return at(second, user=user, n=n)


def test_a_column_is_used_in_key_where_aggregates_and_having(computing: Computing) -> None:
    computing.define(**BY_WHO, having="sum(net) > 12 or who = 'NOBODY'")
    computing.push(rec(60, "ann", 100), rec(61, "bob", 100))
    assert by_key(computing.windows()) == {"BOB": [({"total": 22}, [5, 6])]}


def test_windows_have_the_columns_values_that_their_messages_give(computing: Computing) -> None:
    computing.define(**BY_WHO)
    computing.push(rec(60, "ann", 100), rec(61, "bob", 100))
    assert by_key(computing.windows()) == {
        "ANN": [({"total": 12}, [2, 4])],
        "BOB": [({"total": 22}, [5, 6])],
    }


def test_a_column_hides_a_field_of_the_payload_unless_data_names_it(computing: Computing) -> None:
    computing.define(
        columns={"N": "-data.n"}, where="n < -1", aggregates={"a": "sum(n)", "b": "sum(data.n)"},
        window_type="count", window_size_count=4,
    )  # fmt: skip
    assert by_key(computing.windows()) == {"__GLOBAL__": [({"a": -17, "b": 17}, [5, 2, 4, 6])]}


def test_a_column_that_is_a_path_has_nested_fields(computing: Computing) -> None:
    deep = {**rec(0, "x", 7), "order": {"lines": [{"price": 3}]}}
    computing.push(deep, queue=computing.other)
    computing.define(
        source_queue_names=[computing.other], columns={"lines": "data.order.lines"},
        aggregates={"price": "sum(cast(lines[0].price as bigint))"}, window_type="count", window_size_count=1,
    )  # fmt: skip
    assert by_key(computing.windows()) == {"__GLOBAL__": [({"price": 3}, [7])]}


def test_a_definition_shows_its_columns_and_how_they_are_used(computing: Computing) -> None:
    computing.define(**BY_WHO)
    shown = computing.shown()
    assert shown["columns"] == {"net": "data.n * 2", "who": "UPPER(data.user)"}
    assert (shown["key"], shown["where"], shown["aggregates"]) == (["who"], "net > 2", {"total": "SUM(net)"})
    (version,) = computing.shown("versions")["versions"]
    assert version["columns"] == shown["columns"]


def test_the_same_columns_change_nothing_and_others_are_a_new_version(computing: Computing) -> None:
    assert computing.define(**BY_WHO)["version"] == 1
    assert computing.define(**{**BY_WHO, "columns": {**NET, "net": "data.n*2"}})["version"] == 1
    assert computing.define(**{**BY_WHO, "columns": {**NET, "net": "data.n * 3"}})["version"] == 2


def test_a_new_version_computes_the_new_columns(computing: Computing) -> None:
    count = {"window_type": "count", "window_size_count": 2, "aggregates": {"total": "sum(net)"}}
    computing.define(columns={"net": "data.n"}, **count)
    first = computing.windows()
    computing.define(columns={"net": "data.n * 10"}, **count)
    computing.push(rec(5, "ann", 1), rec(6, "ann", 2))
    totals = [window["aggregates"]["total"] for window in first + computing.windows()]
    assert totals == [6, 6, 30]


REFUSED = [
    ({"columns": {"net": "data.n *"}}, "columns.net: expected an expression"),
    ({"columns": {"net": "sum(data.n)"}}, "columns.net: the aggregate SUM is not allowed in columns"),
    ({"columns": {"net": "1 + count(*)"}}, "columns.net: the aggregate COUNT is not allowed in columns"),
    ({"columns": {"net": "explode(data.tags)"}}, "columns.net: EXPLODE is not allowed in columns"),
    ({"columns": {"net": "data.user * 2"}, "where": "net > 5"}, "columns.net: "),
    ({"columns": {"net": "amount"}}, "columns.net: amount is not in the newest messages"),
    ({"columns": {"net": "data.amount * 2"}}, "CAST(data.amount AS DOUBLE)"),
    ({"columns": {"net": "interval '5' minute"}}, "columns.net: an INTERVAL cannot be a column"),
    ({"columns": {"net": "data.n + 1"}, "where": "net"}, "where: "),
    ({"columns": {"net": "data.amount"}, "where": "net > 5"}, "where: data.amount is compared with a number"),
    ({"columns": {"net": "data.amount"}, "where": "net > 5"}, "CAST(data.amount AS DOUBLE)"),
    ({"columns": {"net": "data.n + 1"}, "where": "net.x = 1"}, "where: the column net has no nested fields"),
    ({"columns": {"net": "data.n"}, "aggregates": {"total": "net"}}, "aggregates.total: data.n is neither"),
    ({"columns": {"a": "data.n", "b": "a + 1"}}, "columns.b: columns cannot use each other"),
    ({"columns": {"n": "n + 1"}}, "columns.n: columns cannot use each other: write out the expression"),
    ({"columns": {"net": "data.n"}}, "columns.net: no expression uses it"),
    ({"columns": {"net": "data.n"}, "window_type": "rows", "window_size_count": 2}, "columns.net: no "),
    ({"columns": {"_net": "data.n"}}, "columns: the name '_net'"),
    ({"columns": {"": "data.n"}}, "columns: the name ''"),
    ({"columns": {"Data": "data.n"}}, "columns: the name 'Data' has a meaning of its own"),
    ({"columns": {"window_end": "data.n"}}, "columns: the name 'window_end' has a meaning of its own"),
    ({"columns": {"net": "data.n", "NET": "data.n"}}, "columns.NET: two columns are named NET"),
    ({"columns": {"net": "data.n"}, "aggregates": {"Net": "sum(net)"}}, "columns.net: an aggregate has the"),
    ({"columns": {f"c{n}": "data.n" for n in range(101)}}, "columns has 101 expressions; the limit is 100"),
    ({"columns": ["data.n"]}, "columns must be an object of expressions by name"),
    ({"columns": {"net": "'" + "x" * 900 + "'"}, "where": " or ".join(["net = ''"] * 12)}, "where: has 109"),
    (
        {"columns": {"net": "+".join(["data.n"] * 100)}, "where": "+".join(["net"] * 100) + " > 0"},
        "where: has",
    ),
    (
        {"columns": {"net": "+".join(["data.n"] * 80)}, "where": "net" + "+ 1" * 80 + " > 0"},
        "where: is too deep with its columns written out",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "reason"), REFUSED, ids=lambda value: str(value)[:60])
def test_wrong_columns_are_refused_with_the_name_of_the_field(
    computing: Computing, fields: dict[str, Any], reason: str
) -> None:
    assert reason in computing.refused(**fields)
