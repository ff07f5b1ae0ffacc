"""Late records."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl


class Judged(NamedTuple):
    """Records that came when their window was closed, and those of them that were dropped."""

    late: pl.DataFrame
    dropped: pl.DataFrame
