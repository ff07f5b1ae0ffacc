"""The grid of tumbling and sliding windows: a window starts at every multiple of the slide."""

from __future__ import annotations

import polars as pl

from .spec import WindowSpec


def first_start(spec: WindowSpec, time: pl.Expr) -> pl.Expr:
    """The start of the first window that ends after a time, which is also the first to contain it."""
    return (time - spec.duration) // spec.slide * spec.slide + spec.slide


def last_start(spec: WindowSpec, time: pl.Expr) -> pl.Expr:
    """The start of the last window that contains a time."""
    return time // spec.slide * spec.slide


def starts_between(spec: WindowSpec, first: pl.Expr, last: pl.Expr) -> pl.Expr:
    """The starts of the windows from the first to the last one, as lists."""
    return pl.int_ranges(first, last + spec.slide, spec.slide)
