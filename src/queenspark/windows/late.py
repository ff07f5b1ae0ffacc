"""Late records."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl


class Judged(NamedTuple):
    """Records that arrived after their window closed, and those of them that were dropped."""

    late: pl.DataFrame
    dropped: pl.DataFrame
