"""Writes the tables of SQL functions in docs/sql.md; with --check it says when they are out of date."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import polars as pl

from queenspark.sql import parse_expression
from queenspark.sql.encoding import json_text
from queenspark.sql.expressions import ALIASES, FUNCTIONS, Compiled, Program, compile_expression
from queenspark.sql.planning.aggregates import AGGREGATES
from queenspark.sql.planning.aggregates import ALIASES as AGGREGATE_ALIASES
from queenspark.sql.tree import Path as ColumnPath
from queenspark.sql.types import NULL, STRING

PAGE = Path(__file__).parent.parent / "docs" / "sql.md"
_BLOCK = re.compile(r"(?s)(<!-- functions -->\n).*?(<!-- end of functions -->)")


def tables() -> str:
    """The tables, one for each family."""
    families = dict.fromkeys(function.family for function in FUNCTIONS.values())
    parts = [_family(family) for family in families]
    return "\n".join([*parts, _aggregates()])


def _family(family: str) -> str:
    lines = [f"### {family.capitalize()}", "", "| function | | example | result |", "|---|---|---|---|"]
    for function in FUNCTIONS.values():
        if function.family == family:
            also = "".join(f", `{alias}`" for alias, of in ALIASES.items() if of == function.name)
            cells = [
                f"`{function.signature}`{also}",
                function.doc,
                f"`{function.example}`",
                _result(function.example),
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _aggregates() -> str:
    lines = ["### Aggregates", "", "| function | |", "|---|---|"]
    for function in AGGREGATES.values():
        also = "".join(f", `{alias}`" for alias, of in AGGREGATE_ALIASES.items() if of == function.name)
        signature = function.signature.replace("|", "\\|")
        lines.append(f"| `{signature}`{also} | {function.doc} |")
    return "\n".join([*lines, ""])


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
