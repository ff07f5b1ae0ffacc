"""A stored query keeps its plan, independent of later changes to its relation."""

import msgspec
import pytest

from queenspark.sql import freeze, parse_one, thaw
from queenspark.sql.statements import CreateStream, Select
from tests.sql.test_planning import Relations, plan
from tests.sql.test_running_plans import QUERIES

_DECLARED = (
    "create stream s (n bigint, c string) as select cast(id as int), city from orders where amount > 1"
)


@pytest.mark.parametrize("text", [*QUERIES, _DECLARED])
def test_a_kept_query_is_planned_as_before(text: str) -> None:
    statement = parse_one(text)
    assert isinstance(statement, CreateStream | Select)
    first = plan(statement)
    kept = msgspec.json.decode(msgspec.json.encode(freeze(statement, Relations())))
    again = thaw(kept)
    assert again.columns == first.columns
    assert (again.kind, again.emission, again.window) == (first.kind, first.emission, first.window)
    assert again.aggregates == first.aggregates
    assert again.records.fields == first.records.fields
    assert again.options == first.options
    assert thaw(kept) is again
