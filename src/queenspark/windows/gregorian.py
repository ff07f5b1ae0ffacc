"""Calendar arithmetic on the parts of a date and time, as columns of whole numbers: exact and portable."""

from __future__ import annotations

import polars as pl

FIRST_US = -62_135_596_800_000_000  # 0001-01-01
END_US = 253_402_300_800_000_000  # 10000-01-01


def days_of(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    """Return the days since 1970; years start in March, so that the leap day comes last."""
    year = year - (month <= 2).cast(pl.Int64)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468


def is_date(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    """Whether this day exists, from the year 1."""
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    last = (
        pl.when(month == 2)
        .then(28 + leap.cast(pl.Int64))
        .otherwise(31 - month.is_in([4, 6, 9, 11]).cast(pl.Int64))
    )
    return (year >= 1) & month.is_between(1, 12) & day.is_between(1, last)


def is_time(hour: pl.Expr, minute: pl.Expr, second: pl.Expr) -> pl.Expr:
    """Whether this time of day exists; leap seconds are not supported."""
    return (hour <= 23) & (minute <= 59) & (second <= 59)


def fraction_us(digits: pl.Expr) -> pl.Expr:
    """Return the microseconds of the digits after a second; none are 0, and more than six are truncated."""
    return digits.fill_null("").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64, strict=False)
