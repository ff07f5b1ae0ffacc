"""Writes the tables of SQL functions in docs/sql.md; with --check it fails if they are out of date.

Each function has an example, and its result is computed here: that of a scalar function by itself, that of an
aggregate over the records of `SAMPLES`, by the plan and the window engine of a job.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import polars as pl

from queenspark.sql import Relation, parse_expression, parse_one, plan_query
from queenspark.sql.encoding import json_text
from queenspark.sql.expressions import ALIASES, FUNCTIONS, Compiled, Program, compile_expression
from queenspark.sql.planning.aggregates import AGGREGATES
from queenspark.sql.planning.aggregates import ALIASES as AGGREGATE_ALIASES
from queenspark.sql.running import MESSAGE, MessageDecoder, RecordStage, RowStage, engine_spec
from queenspark.sql.statements import Select
from queenspark.sql.tree import Path as ColumnPath
from queenspark.sql.types import BIGINT, NULL, STRING
from queenspark.windows import Engine

#: Operators: syntax, result, and examples.
OPERATORS = (
    ("a + b, a - b, a * b", "Arithmetic; an overflow is an error.", ("1.10 + 2",)),
    ("a / b", "A DOUBLE, or a DECIMAL of decimals; a division by zero is an error.", ("7 / 2",)),
    ("a DIV b, a % b", "Quotient and remainder of whole numbers.", ("7 DIV 2", "-7 % 3")),
    ("a || b", "Concatenation; NULL if either value is NULL.", ("'order ' || 7",)),
    ("=, <>, !=, <, <=, >, >=", "Comparison; NULL if either side is NULL.", ("1 <= 2", "NULL = NULL")),
    ("a <=> b, a IS [NOT] DISTINCT FROM b", "Equality in which NULL equals NULL.", ("NULL <=> NULL",)),
    ("AND, OR, NOT", "Three-valued logic.", ("FALSE AND NULL", "TRUE AND NULL")),
    ("a IS [NOT] NULL, TRUE, FALSE", "Never NULL.", ("NULL IS NOT NULL",)),
    ("a [NOT] IN (b, …)", "Whether the value is in the list.", ("3 IN (1, 2)", "3 IN (1, NULL)")),
    ("a [NOT] BETWEEN b AND c", "Whether the value is in a range, inclusive.", ("3 BETWEEN 1 AND 3",)),
    ("a [NOT] LIKE 'b' [ESCAPE 'c']", "Match; % is any text, _ any character.", ("'abc' LIKE 'a%'",)),
    ("a [NOT] ILIKE 'b'", "Case-insensitive LIKE.", ("'ABC' ILIKE 'a%'",)),
    ("a [NOT] RLIKE 'b'", "Whether a regular expression matches.", ("'order 7' RLIKE '[0-9]+'",)),
    (
        "CASE WHEN a THEN b … [ELSE c] END",
        "The first branch whose condition is true.",
        ("CASE WHEN 1 > 2 THEN 'a' END",),
    ),
    (
        "CASE a WHEN b THEN c … [ELSE d] END",
        "The first branch whose value is equal.",
        ("CASE 2 WHEN 2 THEN 'b' END",),
    ),
    ("CAST(a AS type)", "Conversion; an error if the value does not fit.", ("CAST('12' AS INT)",)),
    ("TRY_CAST(a AS type)", "Conversion; NULL if the value does not fit.", ("TRY_CAST('x' AS INT)",)),
    ("array[n]", "An element, counted from 0; an index out of range is an error.", ("SPLIT('a,b', ',')[1]",)),
    (
        "time + INTERVAL, time - INTERVAL",
        "A time later or earlier.",
        ("TIMESTAMP '2026-01-31 12:00:00' + INTERVAL '5' MINUTE",),
    ),
)
#: The records of the examples of aggregates.
SAMPLES = (("a", 4), ("b", 1), ("c", 4), ("d", 6), ("e", None))
#: Examples of aggregates, at least one for each.
EXAMPLES = {
    "COUNT": ("COUNT(*)", "COUNT(n)", "COUNT(DISTINCT n)"),
    "SUM": ("SUM(n)", "SUM(n) FILTER (WHERE name <> 'd')"),
    "AVG": ("AVG(n)",),
    "MIN": ("MIN(n)",),
    "MAX": ("MAX(name)",),
    "FIRST": ("FIRST(name)",),
    "LAST": ("LAST(n)", "LAST(n) IGNORE NULLS"),
    "STDDEV_SAMP": ("STDDEV_SAMP(n)",),
    "STDDEV_POP": ("STDDEV_POP(n)",),
    "VAR_SAMP": ("VAR_SAMP(n)",),
    "VAR_POP": ("VAR_POP(n)",),
    "MIN_BY": ("MIN_BY(name, n)",),
    "MAX_BY": ("MAX_BY(name, n)",),
    "MEDIAN": ("MEDIAN(n)",),
    "PERCENTILE": ("PERCENTILE(n, 0.25)",),
    "COLLECT_LIST": ("COLLECT_LIST(n)",),
    "COLLECT_SET": ("COLLECT_SET(n)",),
    "LAG": ("LAG(n) OVER (ROWS WINDOW BUFFER 2 ROWS)", "LAG(name, 2) OVER (ROWS WINDOW BUFFER 3 ROWS)"),
}

PAGE = Path(__file__).parent.parent / "docs" / "sql.md"
_BLOCK = re.compile(r"(?s)(<!-- functions -->\n).*?(<!-- end of functions -->)")


def tables() -> str:
    """The tables, one for each family."""
    families = dict.fromkeys(function.family for function in FUNCTIONS.values())
    parts = [_family(family) for family in families]
    return "\n".join([_operators(), *parts, _aggregates()])


def _operators() -> str:
    lines = ["### Operators", "", "| written | | example | result |", "|---|---|---|---|"]
    for written, doc, (first, *others) in OPERATORS:
        lines.append(_row(f"`{written}`", doc, f"`{first}`", _result(first)))
        lines += [_row("", "", f"`{example}`", _result(example)) for example in others]
    return "\n".join([*lines, ""])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _family(family: str) -> str:
    title = family[0].upper() + family[1:]
    lines = [f"### {title}", "", "| function | | example | result |", "|---|---|---|---|"]
    for function in FUNCTIONS.values():
        if function.family == family:
            also = "".join(f", `{alias}`" for alias, of in ALIASES.items() if of == function.name)
            name, example = f"`{function.signature}`{also}", function.example
            lines.append(_row(name, function.doc, f"`{example}`", _result(example)))
    return "\n".join([*lines, ""])


def _aggregates() -> str:
    values = ", ".join(f"('{name}', {'NULL' if n is None else n})" for name, n in SAMPLES)
    lines = ["### Aggregates", ""]
    lines += [f"The examples are over a window with these records `(name STRING, n BIGINT)`: {values}.", ""]
    lines += ["| function | | example | result |", "|---|---|---|---|"]
    for function in AGGREGATES.values():
        also = "".join(f", `{alias}`" for alias, of in AGGREGATE_ALIASES.items() if of == function.name)
        first, *others = EXAMPLES[function.name]
        lines.append(_row(f"`{function.signature}`{also}", function.doc, f"`{first}`", aggregated(first)))
        lines += [_row("", "", f"`{example}`", aggregated(example)) for example in others]
    return "\n".join([*lines, ""])


def _payload(name: str, n: int | None) -> str:
    return msgspec.json.encode({"name": name, "n": n}).decode()


class _Samples:
    """A catalogue with the records of the examples."""

    relation = Relation("samples", "schema", {"name": STRING, "n": BIGINT})

    def find(self, name: str) -> Relation | None:
        """The only relation."""
        return self.relation

    def names(self) -> Iterable[str]:
        """Its name."""
        return [self.relation.name]


def aggregated(example: str) -> str:
    """The result of an aggregate for all records, or for the last one where each has a row."""
    window = "" if "OVER" in example else f" WINDOW COUNT({len(SAMPLES)})"
    query = parse_one(f"SELECT {example} AS result FROM samples{window}")  # noqa: S608 - our own text
    assert isinstance(query, Select)
    plan = plan_query(query, _Samples())
    messages = pl.DataFrame(
        [
            (1, 1, number, 0, "samples", "p", str(number), _payload(name, n), None)
            for number, (name, n) in enumerate(SAMPLES)
        ],
        schema=MESSAGE,
        orient="row",
    )
    taken = RecordStage(plan, 1, 1).run(MessageDecoder([plan]).decode(messages))
    named = {"stream": pl.lit(1, dtype=pl.Int64), "version": pl.lit(1, dtype=pl.Int32)}
    records = taken.records.rename({"queue_id": "source"}).with_columns(**named)
    spec = engine_spec(plan)
    assert spec is not None
    frame = pl.concat(Engine({(1, 1): spec}).advance(None, [records], 0).rows)
    stage = RowStage(plan, 1, 1)
    if plan.kind == "rows":
        own = records.drop("key", "source", *named, "created_us", "event_us")
        rows = stage.of_buffers(frame.join(own, on=["txid", "id"]).sort("txid", "id")).rows
    else:
        rows = stage.of_windows(frame).rows
    value = msgspec.json.decode(rows["payload"][-1], type=dict[str, msgspec.Raw])["result"]
    return f"`{bytes(value).decode()}`"


def _result(example: str) -> str:
    compiled = compile_expression(parse_expression(example), _no_names, Program("e"))
    kind = STRING if compiled.type == NULL else compiled.type
    return f"`{pl.select(json_text(compiled.value, kind)).item()}`"


def _no_names(path: ColumnPath) -> Compiled:
    raise path.span.error("an example has no columns")


def main() -> int:
    page = PAGE.read_text()
    made = _BLOCK.sub(lambda match: f"{match[1]}\n{tables()}\n{match[2]}", page)
    if made == page:
        return 0
    if "--check" in sys.argv:
        sys.stderr.write("docs/sql.md is out of date: run tools/sql_functions.py\n")
        return 1
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
