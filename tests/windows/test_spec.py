"""A spec is checked once, when it is made, and says which field is wrong."""

import json
from typing import Any

import pytest

from queenspark.windows import Aggregate, SpecError, WindowSpec, type_of, type_text

MS = 1_000
TUMBLING = {"kind": "tumbling", "duration_us": 60_000 * MS}
SLIDING = {"kind": "sliding", "duration_us": 60_000 * MS, "slide_us": 10_000 * MS}
SESSION = {"kind": "session", "gap_us": 30_000 * MS}
COUNT = {"kind": "count", "size": 10}
ROWS = {"kind": "rows", "size": 10, "emission": "changes"}


def over(function: str, column: str | None, name: str, **more: Any) -> Aggregate:
    inputs = () if column is None else (column,)
    return Aggregate(
        **{"function": function, "inputs": inputs, "types": ("Int64",) * len(inputs), "name": name} | more
    )


TOTAL = over("sum", "amount", "total")

GOOD: list[dict[str, Any]] = [
    TUMBLING,
    SLIDING,
    SESSION,
    COUNT,
    ROWS,
    SLIDING | {"slide_us": 60_000 * MS},
    SLIDING | {"emit_empty": True},
    COUNT | {"step": 3, "emission": "changes"},
    TUMBLING | {"clock": "event", "grace_us": 5_000 * MS, "idle_us": 20_000 * MS, "keep_us": 60_000 * MS},
    {"kind": "group", "emission": "changes", "ttl_us": 5},
    COUNT | {"ttl_us": 5},
    ROWS | {"aggregates": (over("lag", "amount", "before", parameter=1, rows=5),)},
    TUMBLING | {"emission": "changes", "aggregates": (TOTAL, over("max", "amount", "most"))},
]

BAD: list[tuple[str, dict[str, Any]]] = [
    ("kind", TUMBLING | {"kind": "hopping"}),
    ("duration", TUMBLING | {"duration_us": 0}),
    ("duration", TUMBLING | {"duration_us": -1}),
    ("duration", {"kind": "tumbling"}),
    ("duration", {"kind": "sliding", "slide_us": 10_000 * MS}),
    ("slide", SLIDING | {"slide_us": 60_000 * MS + 1}),
    ("slide", SLIDING | {"slide_us": 0}),
    ("slide", {"kind": "sliding", "duration_us": 60_000 * MS}),
    ("gap", {"kind": "session"}),
    ("gap", SESSION | {"gap_us": 0}),
    ("size", {"kind": "count"}),
    ("size", COUNT | {"size": 0}),
    ("size", ROWS | {"size": 0}),
    ("step", COUNT | {"step": 11}),
    ("step", COUNT | {"step": 0}),
    ("clock", TUMBLING | {"clock": "wall"}),
    ("grace", TUMBLING | {"grace_us": -1}),
    ("idle", TUMBLING | {"clock": "event", "idle_us": -1}),
    ("keep", TUMBLING | {"clock": "event", "idle_us": 20_000 * MS, "keep_us": 10_000 * MS}),
    ("late", TUMBLING | {"late": "ignore"}),
    ("emission", TUMBLING | {"emission": "sometimes"}),
    ("emission", ROWS | {"emission": "final"}),
    ("emit_empty", SESSION | {"emit_empty": True}),
    ("emit_empty", COUNT | {"emit_empty": True}),
    ("emit_empty", TUMBLING | {"emission": "changes", "emit_empty": True}),
    ("median", TUMBLING | {"emission": "changes", "aggregates": [("median", "amount", "middle")]}),
    ("lag", TUMBLING | {"aggregates": [over("lag", "amount", "before", parameter=1)]}),
    ("rows", ROWS | {"aggregates": [over("sum", "amount", "total", rows=11)]}),
    ("rows", TUMBLING | {"aggregates": [over("sum", "amount", "total", rows=5)]}),
    ("amount", TUMBLING | {"aggregates": [TOTAL, over("max", "amount", "most", types=("String",))]}),
    ("created_us", TUMBLING | {"aggregates": [("max", "created_us", "newest")]}),
    ("total!", TUMBLING | {"aggregates": [TOTAL, ("max", "amount", "total!")]}),
    ("txid", TUMBLING | {"aggregates": [("max", "amount", "txid")]}),
    ("ttl", TUMBLING | {"ttl_us": 5}),
    ("ttl", ROWS | {"ttl_us": -1}),
    ("size", {"kind": "group", "size": 5}),
    ("total", TUMBLING | {"aggregates": [("sum", "amount", "total"), ("sum", "price", "total")]}),
    ("window_id", TUMBLING | {"aggregates": [("sum", "amount", "window_id")]}),
    ("count", TUMBLING | {"aggregates": [("count", "amount", "count")]}),
    ("replaces", TUMBLING | {"aggregates": [("first", "amount", "replaces")]}),
]


def made(fields: dict[str, Any]) -> WindowSpec:
    aggregates = tuple(
        each if isinstance(each, Aggregate) else over(*each) for each in fields.get("aggregates", ())
    )
    return WindowSpec(**fields | {"aggregates": aggregates})


@pytest.mark.parametrize("fields", GOOD)
def test_good_specs_survive_json(fields: dict[str, Any]) -> None:
    spec = made(fields)
    assert WindowSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(("field", "fields"), BAD)
def test_an_error_names_the_field(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=field):
        made(fields)


def test_an_unknown_field_in_json_is_refused() -> None:
    text = json.dumps(json.loads(made(TUMBLING).to_json()) | {"graceTime": 1})
    with pytest.raises(SpecError, match="graceTime"):
        WindowSpec.from_json(text)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"tumbling"', "{}", '{"kind": 1}'])
def test_json_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        WindowSpec.from_json(text)


@pytest.mark.parametrize(
    ("problem", "fields"),
    [
        ("unknown", {"function": "mode"}),
        ("inputs", {"inputs": ()}),
        ("inputs", {"function": "min_by"}),
        ("types", {"types": ()}),
        ("type", {"types": ("Integer",)}),
        ("Decimal", {"types": ("Decimal(39,2)",)}),
        ("number", {"types": ("String",)}),
        ("compared", {"function": "max", "types": ("List(Int64)",)}),
        ("compared", {"function": "count", "distinct": True, "types": ("List(Int64)",)}),
        ("distinct", {"distinct": True}),
        ("ignore_nulls", {"ignore_nulls": True}),
        ("parameter", {"parameter": 1}),
        ("parameter", {"function": "percentile"}),
        ("parameter", {"function": "percentile", "parameter": 1.5}),
        ("parameter", {"function": "lag", "parameter": 0}),
        ("where", {"function": "lag", "parameter": 1, "where": "b"}),
    ],
)
def test_an_aggregate_that_cannot_be_is_refused(problem: str, fields: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=problem):
        Aggregate(**{"function": "sum", "inputs": ("a",), "types": ("Int64",), "name": "x"} | fields)


@pytest.mark.parametrize(
    "text",
    [
        "Int64",
        "Float32",
        "Boolean",
        "String",
        "Date",
        "Datetime",
        "Decimal(38,2)",
        "List(List(String))",
        "Null",
    ],
)
def test_types_survive_their_text(text: str) -> None:
    assert type_text(type_of(text)) == text


def test_positional_fields_are_refused() -> None:
    with pytest.raises(TypeError):
        WindowSpec("tumbling", 60_000 * MS)  # type: ignore[call-arg]


def test_defaults() -> None:
    spec = made(TUMBLING)
    assert (spec.clock, spec.late, spec.emission, spec.grace_us) == ("ingest", "process", "final", 0)
    assert spec.keep == 600_000 * MS
    assert made(TUMBLING | {"clock": "event", "grace_us": 15_000 * MS}).idle == 15_000 * MS
    assert made(TUMBLING | {"clock": "event"}).idle == 10_000 * MS
    assert made(COUNT).each == 10
