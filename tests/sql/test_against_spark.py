"""Spark is the judge: compiled expressions give Spark's values, types and errors."""

from contextlib import suppress
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from queenspark.sql import Relation, SqlError, parse_expression, parse_one, plan_query
from queenspark.sql.cursor import Cursor
from queenspark.sql.expression_text import expression_text
from queenspark.sql.expressions import ALIASES, FUNCTIONS
from queenspark.sql.planning.aggregates import AGGREGATES
from queenspark.sql.statements import Select
from queenspark.sql.tree import Node, with_paths
from queenspark.sql.tree import Path as ColumnPath
from queenspark.sql.type_parser import type_name
from queenspark.sql.types import SqlType, from_name
from tests.sql.judge import Judge, Result, differences, ours, spark_name
from tests.sql.values import CASTABLE, JSON_TEXT, TIME_TEXT, column_type, fixed_frame, frames

_FIXTURES = Path(__file__).parent / "fixtures"


def _type(text: str) -> SqlType:
    special = {"CASTABLE": CASTABLE, "TIME_TEXT": TIME_TEXT, "JSON_TEXT": JSON_TEXT}
    return special[text] if text in special else from_name(type_name(Cursor(text)))


def _columns(header: str) -> dict[str, SqlType]:
    """`a BIGINT, b DECIMAL(10, 2)`; each name is one letter."""
    parts = header.replace(", a ", "\na ").replace(", b ", "\nb ").replace(", c ", "\nc ").split("\n")
    return {part[0]: _type(part[2:]) for part in parts}


def _cases() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for section in (_FIXTURES / "judged.sql").read_text().split("\n\n")[1:]:
        lines = section.strip().split("\n")
        expressions = [line for line in lines if not line.startswith("## ")]
        for line in lines:
            if line.startswith("## "):
                found.setdefault(line.removeprefix("## "), []).extend(expressions)
    return found


CASES = _cases()


@pytest.mark.parametrize("columns", CASES)
def test_expressions_equal_spark(judge: Judge, columns: str, full_size: bool) -> None:
    kinds, expressions = _columns(columns), CASES[columns]
    types = {name: column_type(kind) for name, kind in kinds.items()}

    @seed(20260131)
    @settings(
        max_examples=10 if full_size else 1,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(frames(kinds, 200 if full_size else 30))
    def check(frame: pl.DataFrame) -> None:
        wrong: list[str] = []
        for text, right in zip(expressions, judge.ask(expressions, frame), strict=True):
            try:
                mine = ours(text, frame, types)
            except SqlError:
                continue  # `test_refusals` has them all
            if isinstance(right, Result):
                wrong += differences(text, frame, mine, right)
            else:
                wrong.append(f"{text}: compiled, but Spark says {right}")
        assert not wrong, "\n".join(wrong[:40])

    check()


_COMPOSED = [
    "a INT, b INT",
    "a BIGINT, b DOUBLE",
    "a DECIMAL(10, 2), b INT",
    "a STRING, b STRING",
    "a DOUBLE",
]


def _with_inside(outer: Node, inside: dict[str, Node]) -> Node:
    return with_paths(outer, lambda path: inside[str(path.steps[0])])


def _composed(columns: str, count: int) -> list[str]:
    """Expressions with others inside of them."""
    kinds, chance = _columns(columns), Random(20260131)
    # Spark computes the operands of these apart, where the judge cannot catch their errors.
    apart = ("NULLIF", "BETWEEN")
    parts = [parse_expression(text) for text in CASES[columns] if not any(word in text for word in apart)]
    frame = pl.DataFrame(schema={name: column_type(kind).column for name, kind in kinds.items()})
    found: list[str] = []
    while len(found) < count:
        outer, inner, other = (chance.choice(parts) for _ in range(3))
        inside: dict[str, Node] = {"a": inner, "b": chance.choice([other, ColumnPath(steps=("b",))])}
        text = expression_text(_with_inside(outer, inside))
        try:
            ours(text, frame, {name: column_type(kind) for name, kind in kinds.items()})
        except SqlError:
            continue
        found.append(text)
    return found


@pytest.mark.parametrize("columns", _COMPOSED)
def test_composed_expressions_equal_spark(judge: Judge, columns: str, full_size: bool) -> None:
    kinds = _columns(columns)
    types = {name: column_type(kind) for name, kind in kinds.items()}
    expressions = _composed(columns, 400 if full_size else 40)
    frame = fixed_frame(kinds)
    wrong: list[str] = []
    for text, right in zip(expressions, judge.ask(expressions, frame), strict=True):
        assert isinstance(right, Result), (text, right)
        wrong += differences(text, frame, ours(text, frame, types), right)[:3]
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize("columns", CASES)
def test_expressions_never_raise_on_no_rows_and_on_one(columns: str) -> None:
    kinds = _columns(columns)
    types = {name: column_type(kind) for name, kind in kinds.items()}
    frame = fixed_frame(kinds)
    for text in CASES[columns]:
        for rows in (frame.clear(), frame.head(1), frame.tail(1)):
            with suppress(SqlError):
                ours(text, rows, types)


def test_refusals() -> None:
    """Expressions that are refused: all that Spark refuses, and some that it would run."""
    refused = []
    for columns, expressions in CASES.items():
        kinds = _columns(columns)
        frame = pl.DataFrame(schema={name: column_type(kind).column for name, kind in kinds.items()})
        for text in expressions:
            try:
                ours(text, frame, {name: column_type(kind) for name, kind in kinds.items()})
            except SqlError as error:
                refused.append(f"{columns}: {text}: {error.message}")
    assert "\n".join(refused) + "\n" == (_FIXTURES / "refused.txt").read_text()


def test_every_function_is_judged() -> None:
    text = "\n".join(expression for expressions in CASES.values() for expression in expressions)
    for name in [*FUNCTIONS, *ALIASES]:
        assert f"{name}(" in text, name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_equals_spark(judge: Judge, name: str) -> None:
    frame = pl.DataFrame({"row": [0]})
    example = FUNCTIONS[name].example
    (right,) = judge.ask([example], frame)
    assert isinstance(right, Result), right
    assert not differences(example, frame, ours(example, frame, {}), right)


_AGGREGATED = [
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DECIMAL(10, 2)", "DECIMAL(30, 5)", "DECIMAL(38, 4)"),
    *("STRING", "BOOLEAN", "DATE", "TIMESTAMP"),
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in AGGREGATES if name != "LAG"])
def test_the_type_of_an_aggregate_is_that_of_spark(judge: Judge, name: str) -> None:
    kinds = {f"c{number}": _type(text) for number, text in enumerate(_AGGREGATED)}
    relation = Relation("t", "schema", columns=kinds)
    rest = {"PERCENTILE": ", 0.5", "MIN_BY": ", c3", "MAX_BY": ", c3"}.get(name, "")
    calls = [f"{name}({column}{rest})" for column in kinds]
    frame = pl.DataFrame(schema={column: kind.column for column, kind in kinds.items()})
    for call, right in zip(calls, judge.aggregate_types(calls, frame), strict=True):
        query = parse_one(f"SELECT {call} AS x FROM t WINDOW TUMBLING(1m)")
        assert isinstance(query, Select)
        try:
            found = plan_query(query, _OneRelation(relation))
        except SqlError:
            continue  # refused: strings where numbers are wanted, decimals that are too long
        assert spark_name(found.columns["x"]) == right, call


class _OneRelation:
    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def find(self, name: str) -> Relation | None:
        return self._relation

    def names(self) -> list[str]:
        return ["t"]
