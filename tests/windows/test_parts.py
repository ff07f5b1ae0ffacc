"""Building blocks of aggregates."""

import math

import polars as pl

from queenspark.windows.parts import one_zero


def test_both_zeros_are_one_value_in_a_column_of_any_length() -> None:
    values = pl.DataFrame({"x": [-0.0, 0.0, -1.5, math.nan, None, -0.0]})
    for length in (1, 2, 6):
        found = values.head(length).select(one_zero(pl.col("x"))).to_series().to_list()
        assert [math.copysign(1, value) for value in found if value == 0] == [1.0] * found.count(0)
    assert repr(found) == "[0.0, 0.0, -1.5, nan, None, 0.0]"
