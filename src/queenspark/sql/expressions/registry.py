"""The scalar functions, as listed by SHOW FUNCTIONS. Each one equals Spark's function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import arrays, conditional, numbers, text, time_functions
from .compiled import Argument, Compiled


class Function(NamedTuple):
    """A scalar function."""

    name: str
    signature: str
    family: str
    doc: str
    example: str
    compile: Callable[..., Compiled]
    least: int
    most: int | None  # None: any number of arguments


def _coalesce(*arguments: Argument) -> Compiled:
    return conditional.coalesced([each.compiled for each in arguments], arguments[0].span)


def _null_if(left: Argument, right: Argument) -> Compiled:
    return conditional.null_if(left.compiled, right.compiled, left.span)


def _if(condition: Argument, then: Argument, otherwise: Argument) -> Compiled:
    return conditional.choice([(condition.compiled, then.compiled)], otherwise.compiled, condition.span)


def _nvl2(value: Argument, then: Argument, otherwise: Argument) -> Compiled:
    present = conditional.missing(value.compiled)
    return conditional.choice([(present, otherwise.compiled)], then.compiled, value.span)


def _is_null(argument: Argument) -> Compiled:
    return conditional.missing(argument.compiled)


_S, _N, _T, _C, _A = "strings", "numbers", "times", "conditions", "arrays"
_LIST = [
    Function("UPPER", "UPPER(string)", _S, "The string in upper case.", "UPPER('abc')", text.upper, 1, 1),
    Function("LOWER", "LOWER(string)", _S, "The string in lower case.", "LOWER('ABC')", text.lower, 1, 1),
    Function("LENGTH", "LENGTH(string)", _S, "Number of characters.", "LENGTH('abc')", text.length, 1, 1),
    Function(
        "TRIM",
        "TRIM(string)",
        _S,
        "The string without leading and trailing spaces.",
        "TRIM(' a ')",
        text.trim,
        1,
        1,
    ),
    Function(
        "LTRIM",
        "LTRIM(string)",
        _S,
        "The string without leading spaces.",
        "LTRIM(' a ')",
        text.left_trim,
        1,
        1,
    ),
    Function(
        "RTRIM",
        "RTRIM(string)",
        _S,
        "The string without trailing spaces.",
        "RTRIM(' a ')",
        text.right_trim,
        1,
        1,
    ),
    Function(
        "SUBSTRING",
        "SUBSTRING(string, position [, length])",
        _S,
        "A part of the string; positions count from 1, negative ones from the end.",
        "SUBSTRING('abc', 2, 1)",
        text.substring,
        2,
        3,
    ),
    Function("LEFT", "LEFT(string, length)", _S, "The first characters.", "LEFT('abc', 2)", text.left, 2, 2),
    Function(
        "RIGHT", "RIGHT(string, length)", _S, "The last characters.", "RIGHT('abc', 2)", text.right, 2, 2
    ),
    Function(
        "CONCAT",
        "CONCAT(value, …)",
        _S,
        "The values concatenated; NULL if any is NULL.",
        "CONCAT('a', 1)",
        text.concat,
        0,
        None,
    ),
    Function(
        "CONCAT_WS",
        "CONCAT_WS('separator', value, …)",
        _S,
        "The values joined with a separator, without NULLs.",
        "CONCAT_WS('-', 'a', 'b')",
        text.concat_with,
        1,
        None,
    ),
    Function(
        "REPLACE",
        "REPLACE(string, 'search' [, replacement])",
        _S,
        "The string with every occurrence replaced.",
        "REPLACE('abc', 'b', 'x')",
        text.replace,
        2,
        3,
    ),
    Function(
        "SPLIT",
        "SPLIT(string, 'separator')",
        _S,
        "An array of the parts.",
        "SPLIT('a,b', ',')",
        text.split,
        2,
        2,
    ),
    Function(
        "STARTSWITH",
        "STARTSWITH(string, prefix)",
        _S,
        "Whether the string starts with the prefix.",
        "STARTSWITH('abc', 'a')",
        text.starts_with,
        2,
        2,
    ),
    Function(
        "ENDSWITH",
        "ENDSWITH(string, suffix)",
        _S,
        "Whether the string ends with the suffix.",
        "ENDSWITH('abc', 'c')",
        text.ends_with,
        2,
        2,
    ),
    Function(
        "CONTAINS",
        "CONTAINS(string, part)",
        _S,
        "Whether the part occurs.",
        "CONTAINS('abc', 'b')",
        text.contains,
        2,
        2,
    ),
    Function(
        "INSTR",
        "INSTR(string, part)",
        _S,
        "Where the part begins, or 0.",
        "INSTR('abc', 'c')",
        text.position,
        2,
        2,
    ),
    Function(
        "LOCATE",
        "LOCATE(part, string)",
        _S,
        "Where the part begins, or 0.",
        "LOCATE('c', 'abc')",
        text.locate,
        2,
        2,
    ),
    Function(
        "LPAD",
        "LPAD(string, length [, 'fill'])",
        _S,
        "Padded on the left, or truncated, to a length.",
        "LPAD('7', 3, '0')",
        text.left_pad,
        2,
        3,
    ),
    Function(
        "RPAD",
        "RPAD(string, length [, 'fill'])",
        _S,
        "Padded on the right, or truncated, to a length.",
        "RPAD('7', 3, '.')",
        text.right_pad,
        2,
        3,
    ),
    Function(
        "REPEAT",
        "REPEAT(string, times)",
        _S,
        "The string repeated.",
        "REPEAT('ab', 2)",
        text.repeat,
        2,
        2,
    ),
    Function("REVERSE", "REVERSE(string)", _S, "The string reversed.", "REVERSE('abc')", text.reverse, 1, 1),
    Function("MD5", "MD5(string)", _S, "The MD5 digest, in hexadecimal.", "MD5('abc')", text.md5_text, 1, 1),
    Function(
        "SHA2",
        "SHA2(string, bits)",
        _S,
        "A SHA-2 digest of 224, 256, 384 or 512 bits, in hexadecimal.",
        "SHA2('abc', 256)",
        text.sha2,
        2,
        2,
    ),
    Function("ABS", "ABS(number)", _N, "The number without its sign.", "ABS(-5)", numbers.absolute, 1, 1),
    Function("CEIL", "CEIL(number)", _N, "The next whole number above.", "CEIL(1.2)", numbers.ceiling, 1, 1),
    Function(
        "FLOOR", "FLOOR(number)", _N, "The next whole number below.", "FLOOR(-1.2)", numbers.floor, 1, 1
    ),
    Function(
        "ROUND",
        "ROUND(number [, places])",
        _N,
        "Rounded half up.",
        "ROUND(2.345, 2)",
        numbers.round_half_up,
        1,
        2,
    ),
    Function("SIGN", "SIGN(number)", _N, "-1.0, 0.0 or 1.0.", "SIGN(-5)", numbers.sign, 1, 1),
    Function(
        "SQRT",
        "SQRT(number)",
        _N,
        "The square root; NaN of a negative number.",
        "SQRT(16)",
        numbers.square_root,
        1,
        1,
    ),
    Function(
        "MOD",
        "MOD(number, number)",
        _N,
        "The remainder, with the sign of the dividend.",
        "MOD(-7, 3)",
        numbers.modulo,
        2,
        2,
    ),
    Function(
        "PMOD",
        "PMOD(integer, integer)",
        _N,
        "The remainder, not negative.",
        "PMOD(-7, 3)",
        numbers.positive_modulo,
        2,
        2,
    ),
    Function(
        "GREATEST",
        "GREATEST(value, value, …)",
        _N,
        "The largest value that is not NULL.",
        "GREATEST(1, 3, 2)",
        numbers.greatest,
        2,
        None,
    ),
    Function(
        "LEAST",
        "LEAST(value, value, …)",
        _N,
        "The smallest value that is not NULL.",
        "LEAST(1, 3, 2)",
        numbers.least,
        2,
        None,
    ),
    Function("YEAR", "YEAR(time)", _T, "The year.", "YEAR(DATE '2026-01-31')", time_functions.year, 1, 1),
    Function(
        "QUARTER", "QUARTER(time)", _T, "1 to 4.", "QUARTER(DATE '2026-01-31')", time_functions.quarter, 1, 1
    ),
    Function("MONTH", "MONTH(time)", _T, "1 to 12.", "MONTH(DATE '2026-01-31')", time_functions.month, 1, 1),
    Function(
        "DAY", "DAY(time)", _T, "The day of the month.", "DAY(DATE '2026-01-31')", time_functions.day, 1, 1
    ),
    Function(
        "DAYOFWEEK",
        "DAYOFWEEK(time)",
        _T,
        "1 (Sunday) to 7.",
        "DAYOFWEEK(DATE '2026-01-31')",
        time_functions.day_of_week,
        1,
        1,
    ),
    Function(
        "DAYOFYEAR",
        "DAYOFYEAR(time)",
        _T,
        "1 to 366.",
        "DAYOFYEAR(DATE '2026-01-31')",
        time_functions.day_of_year,
        1,
        1,
    ),
    Function(
        "WEEKOFYEAR",
        "WEEKOFYEAR(time)",
        _T,
        "The ISO week, 1 to 53.",
        "WEEKOFYEAR(DATE '2026-01-31')",
        time_functions.week,
        1,
        1,
    ),
    Function(
        "LAST_DAY",
        "LAST_DAY(time)",
        _T,
        "The last day of its month.",
        "LAST_DAY(DATE '2026-02-03')",
        time_functions.last_day,
        1,
        1,
    ),
    Function(
        "HOUR",
        "HOUR(timestamp)",
        _T,
        "0 to 23.",
        "HOUR(TIMESTAMP '2026-01-31 12:34:56')",
        time_functions.hour,
        1,
        1,
    ),
    Function(
        "MINUTE",
        "MINUTE(timestamp)",
        _T,
        "0 to 59.",
        "MINUTE(TIMESTAMP '2026-01-31 12:34:56')",
        time_functions.minute,
        1,
        1,
    ),
    Function(
        "SECOND",
        "SECOND(timestamp)",
        _T,
        "0 to 59.",
        "SECOND(TIMESTAMP '2026-01-31 12:34:56')",
        time_functions.second,
        1,
        1,
    ),
    Function(
        "DATE_TRUNC",
        "DATE_TRUNC('unit', timestamp)",
        _T,
        "The start of the YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND or MILLISECOND.",
        "DATE_TRUNC('HOUR', TIMESTAMP '2026-01-31 12:34:56')",
        time_functions.date_trunc,
        2,
        2,
    ),
    Function(
        "UNIX_SECONDS",
        "UNIX_SECONDS(timestamp)",
        _T,
        "Seconds since 1970.",
        "UNIX_SECONDS(TIMESTAMP '2026-01-31 12:34:56')",
        time_functions.unix_seconds,
        1,
        1,
    ),
    Function(
        "UNIX_MILLIS",
        "UNIX_MILLIS(timestamp)",
        _T,
        "Milliseconds since 1970.",
        "UNIX_MILLIS(TIMESTAMP '2026-01-31 12:34:56')",
        time_functions.unix_millis,
        1,
        1,
    ),
    Function(
        "UNIX_MICROS",
        "UNIX_MICROS(timestamp)",
        _T,
        "Microseconds since 1970.",
        "UNIX_MICROS(TIMESTAMP '2026-01-31 12:34:56')",
        time_functions.unix_micros,
        1,
        1,
    ),
    Function(
        "TIMESTAMP_SECONDS",
        "TIMESTAMP_SECONDS(integer)",
        _T,
        "The time of seconds since 1970.",
        "TIMESTAMP_SECONDS(1769862896)",
        time_functions.timestamp_seconds,
        1,
        1,
    ),
    Function(
        "TIMESTAMP_MILLIS",
        "TIMESTAMP_MILLIS(integer)",
        _T,
        "The time of milliseconds since 1970.",
        "TIMESTAMP_MILLIS(1769862896000)",
        time_functions.timestamp_millis,
        1,
        1,
    ),
    Function(
        "TIMESTAMP_MICROS",
        "TIMESTAMP_MICROS(integer)",
        _T,
        "The time of microseconds since 1970.",
        "TIMESTAMP_MICROS(1769862896000000)",
        time_functions.timestamp_micros,
        1,
        1,
    ),
    Function(
        "TO_TIMESTAMP",
        "TO_TIMESTAMP(string)",
        _T,
        "The timestamp in a string.",
        "TO_TIMESTAMP('2026-01-31T12:34:56Z')",
        time_functions.to_timestamp,
        1,
        1,
    ),
    Function(
        "TO_DATE",
        "TO_DATE(value)",
        _T,
        "The day of a string or time.",
        "TO_DATE('2026-01-31')",
        time_functions.to_date,
        1,
        1,
    ),
    Function(
        "DATE_ADD",
        "DATE_ADD(date, days)",
        _T,
        "Days later.",
        "DATE_ADD(DATE '2026-01-31', 1)",
        time_functions.date_add,
        2,
        2,
    ),
    Function(
        "DATE_SUB",
        "DATE_SUB(date, days)",
        _T,
        "Days earlier.",
        "DATE_SUB(DATE '2026-01-31', 1)",
        time_functions.date_sub,
        2,
        2,
    ),
    Function(
        "DATEDIFF",
        "DATEDIFF(end, start)",
        _T,
        "Days between two dates.",
        "DATEDIFF(DATE '2026-02-01', DATE '2026-01-31')",
        time_functions.date_diff,
        2,
        2,
    ),
    Function(
        "MAKE_DATE",
        "MAKE_DATE(year, month, day)",
        _T,
        "A date.",
        "MAKE_DATE(2026, 1, 31)",
        time_functions.make_date,
        3,
        3,
    ),
    Function(
        "COALESCE",
        "COALESCE(value, …)",
        _C,
        "The first value that is not NULL.",
        "COALESCE(NULL, 1)",
        _coalesce,
        1,
        None,
    ),
    Function(
        "IFNULL",
        "IFNULL(value, default)",
        _C,
        "The value, or the default for NULL.",
        "IFNULL(NULL, 1)",
        _coalesce,
        2,
        2,
    ),
    Function("NULLIF", "NULLIF(value, value)", _C, "NULL if both are equal.", "NULLIF(1, 1)", _null_if, 2, 2),
    Function(
        "IF",
        "IF(condition, then, else)",
        _C,
        "The second value if the condition is true, else the third.",
        "IF(TRUE, 1, 2)",
        _if,
        3,
        3,
    ),
    Function(
        "NVL2",
        "NVL2(value, then, else)",
        _C,
        "The second for a value, the third for NULL.",
        "NVL2(NULL, 1, 2)",
        _nvl2,
        3,
        3,
    ),
    Function("ISNULL", "ISNULL(value)", _C, "Whether it is NULL.", "ISNULL(NULL)", _is_null, 1, 1),
    Function(
        "SIZE", "SIZE(array)", _A, "The number of elements.", "SIZE(SPLIT('a,b', ','))", arrays.size, 1, 1
    ),
    Function(
        "ARRAY_CONTAINS",
        "ARRAY_CONTAINS(array, value)",
        _A,
        "Whether the value is an element.",
        "ARRAY_CONTAINS(SPLIT('a,b', ','), 'a')",
        arrays.array_contains,
        2,
        2,
    ),
]

#: Aliases.
ALIASES = {
    "SUBSTR": "SUBSTRING",
    "UCASE": "UPPER",
    "LCASE": "LOWER",
    "CHAR_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "LENGTH",
    "LEN": "LENGTH",
    "POSITION": "LOCATE",
    "CEILING": "CEIL",
    "SIGNUM": "SIGN",
    "DAYOFMONTH": "DAY",
    "NVL": "IFNULL",
    "DATE_DIFF": "DATEDIFF",
    "CARDINALITY": "SIZE",
}
FUNCTIONS = {function.name: function for function in _LIST}


def find(name: str) -> Function | None:
    """Find a function by one of its names, in upper case."""
    return FUNCTIONS.get(ALIASES.get(name, name))
