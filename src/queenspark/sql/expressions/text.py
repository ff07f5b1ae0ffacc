"""String functions; positions count characters (code points) from 1."""

from __future__ import annotations

from hashlib import md5, sha224, sha256, sha384, sha512

import polars as pl

from ..source import Span
from ..tree import Literal
from ..types import ARRAY_OF_STRINGS, BOOLEAN, INT, NULL, STRING
from .compiled import Argument, Compiled, all_of, fail_where, in_turn
from .conversion import widened
from .java_numbers import per_value
from .patterns import LAST_BREAK, RegexTranslator, like_pattern, plain_separator
from .to_text import to_text

#: Maximum length of a string from LPAD and RPAD.
LONGEST = 100_000
#: Maximum size of a string from REPEAT and REPLACE.
MOST_BYTES = 10_000_000
_MOST = 2**31 - 1
_SHA = {0: sha256, 224: sha224, 256: sha256, 384: sha384, 512: sha512}


def string(argument: Argument) -> Compiled:
    """An argument that must be a string."""
    if argument.type == NULL:
        return widened(argument.compiled, STRING)
    if not argument.type.is_text:
        raise argument.span.error(f"expected a STRING, found {argument.type}; use CAST")
    return argument.compiled._replace(type=STRING)


def whole(argument: Argument) -> Compiled:
    """An argument that must be an INT."""
    if argument.type == NULL:
        return widened(argument.compiled, INT)
    if not argument.type.is_integer or argument.type.bits > INT.bits:
        raise argument.span.error(f"expected an INT, found {argument.type}; use CAST(… AS INT)")
    return widened(argument.compiled, INT)


def constant_string(argument: Argument, what: str) -> str:
    """An argument that must be a string literal."""
    found = argument.compiled.literal
    if not isinstance(found, Literal) or found.kind != "string":
        raise argument.span.error(f"{what} must be a string in quotes")
    return found.text


def constant_number(argument: Argument, what: str, least: int, most: int) -> int:
    """An argument that must be an integer literal."""
    found = argument.compiled.literal
    if not isinstance(found, Literal) or found.kind != "integer":
        raise argument.span.error(f"{what} must be a whole number")
    value = int(found.text)
    if not least <= value <= most:
        raise argument.span.error(f"{what} is {value}; it must be from {least} to {most}")
    return value


def upper(text: Argument) -> Compiled:
    """UPPER."""
    a = string(text)
    return Compiled(a.value.str.to_uppercase(), STRING, a.error)


def lower(text: Argument) -> Compiled:
    """LOWER."""
    a = string(text)
    return Compiled(a.value.str.to_lowercase(), STRING, a.error)


def length(text: Argument) -> Compiled:
    """LENGTH."""
    a = string(text)
    return Compiled(a.value.str.len_chars().cast(pl.Int32), INT, a.error)


def trim(text: Argument) -> Compiled:
    """TRIM: blanks only."""
    a = string(text)
    return Compiled(a.value.str.strip_chars(" "), STRING, a.error)


def left_trim(text: Argument) -> Compiled:
    """LTRIM."""
    a = string(text)
    return Compiled(a.value.str.strip_chars_start(" "), STRING, a.error)


def right_trim(text: Argument) -> Compiled:
    """RTRIM."""
    a = string(text)
    return Compiled(a.value.str.strip_chars_end(" "), STRING, a.error)


def substring(text: Argument, position: Argument, size: Argument | None = None) -> Compiled:
    """SUBSTRING: a negative position counts from the end."""
    a, start = string(text), whole(position)
    if size is None:
        return _slice(a, start, Compiled(pl.lit(_MOST, dtype=pl.Int32), INT))
    return _slice(a, start, whole(size))


def _slice(a: Compiled, position: Compiled, size: Compiled) -> Compiled:
    at, count = position.value.cast(pl.Int64), size.value.cast(pl.Int64)
    length = a.value.str.len_chars().cast(pl.Int64)
    start = pl.when(at > 0).then(at - 1).when(at < 0).then(length + at).otherwise(0)
    begin = pl.max_horizontal(start, pl.lit(0, dtype=pl.Int64))
    until = pl.max_horizontal(start + count - begin, pl.lit(0, dtype=pl.Int64))
    present = at.is_not_null() & count.is_not_null()
    value = pl.when(present).then(a.value.str.slice(begin, until))
    return Compiled(value, STRING, in_turn([a, position, size]))


def left(text: Argument, size: Argument) -> Compiled:
    """LEFT."""
    return _slice(string(text), Compiled(pl.lit(1, dtype=pl.Int32), INT), whole(size))


def right(text: Argument, size: Argument) -> Compiled:
    """RIGHT."""
    a, count = string(text), whole(size)
    n = count.value.cast(pl.Int64)
    length = a.value.str.len_chars().cast(pl.Int64)
    begin = pl.max_horizontal(length - n, pl.lit(0, dtype=pl.Int64))
    value = (
        pl.when(n <= 0)
        .then(pl.when(a.value.is_not_null()).then(pl.lit("")))
        .when(n > 0)
        .then(a.value.str.slice(begin))
    )
    return Compiled(value, STRING, all_of([a, count]))


def concat(*texts: Argument) -> Compiled:
    """CONCAT and ||: NULL if one is."""
    parts = [to_text(each.compiled, each.span) for each in texts]
    if not parts:
        return Compiled(pl.lit(""), STRING)
    return Compiled(pl.concat_str([part.value for part in parts]), STRING, all_of(parts))


def concat_with(separator: Argument, *texts: Argument) -> Compiled:
    """CONCAT_WS: NULLs are skipped."""
    between = constant_string(separator, "the separator")
    parts = [to_text(each.compiled, each.span) for each in texts]
    if not parts:
        return Compiled(pl.lit(""), STRING)
    value = pl.concat_str([part.value for part in parts], separator=between, ignore_nulls=True)
    return Compiled(value, STRING, all_of(parts))


def replace(text: Argument, search: Argument, by: Argument | None = None) -> Compiled:
    """REPLACE."""
    a, what = string(text), constant_string(search, "the text to replace")
    new = Compiled(pl.lit(""), STRING) if by is None else string(by)
    if not what:
        return Compiled(pl.when(new.value.is_not_null()).then(a.value), STRING, in_turn([a, new]))
    more = a.value.str.count_matches(what, literal=True).cast(pl.Int64) * _bytes(new.value)
    fits, own = _limited(_bytes(a.value) + more)
    value = pl.when(fits).then(a.value).str.replace_all(what, new.value.fill_null(""), literal=True)
    return Compiled(pl.when(new.value.is_not_null()).then(value), STRING, in_turn([a, new], own))


def _bytes(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes().cast(pl.Int64)


def _limited(size: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Whether a string of this size is allowed, and the error if not: nested calls multiply their sizes."""
    fits = (size <= MOST_BYTES).fill_null(True)
    return fits, fail_where(~fits, f"the string would have more than {MOST_BYTES:,} bytes")


def split(text: Argument, separator: Argument) -> Compiled:
    """SPLIT by plain text."""
    a = string(text)
    by = plain_separator(constant_string(separator, "the separator"), separator.span)
    return Compiled(a.value.str.split(by), ARRAY_OF_STRINGS, a.error)


def starts_with(text: Argument, prefix: Argument) -> Compiled:
    """STARTSWITH."""
    a, b = string(text), string(prefix)
    return Compiled(a.value.str.starts_with(b.value), BOOLEAN, in_turn([a, b]))


def ends_with(text: Argument, suffix: Argument) -> Compiled:
    """ENDSWITH."""
    a, b = string(text), string(suffix)
    return Compiled(a.value.str.ends_with(b.value), BOOLEAN, in_turn([a, b]))


def contains(text: Argument, part: Argument) -> Compiled:
    """CONTAINS."""
    a, b = string(text), string(part)
    return Compiled(a.value.str.contains(b.value, literal=True), BOOLEAN, in_turn([a, b]))


def position(text: Argument, part: Argument) -> Compiled:
    """INSTR: the position of a part, or 0."""
    a, b = string(text), string(part)
    offset = a.value.str.find(b.value, literal=True)
    before = a.value.cast(pl.Binary).bin.slice(0, offset).cast(pl.String).str.len_chars()
    found = pl.when(offset.is_not_null()).then(before.cast(pl.Int32) + 1).otherwise(0).cast(pl.Int32)
    present = a.value.is_not_null() & b.value.is_not_null()
    return Compiled(pl.when(present).then(found), INT, in_turn([a, b]))


def locate(part: Argument, text: Argument) -> Compiled:
    """LOCATE and POSITION: INSTR with its arguments swapped."""
    return position(text, part)


def left_pad(text: Argument, size: Argument, fill: Argument | None = None) -> Compiled:
    """LPAD."""
    return _pad(text, size, fill, before=True)


def right_pad(text: Argument, size: Argument, fill: Argument | None = None) -> Compiled:
    """RPAD."""
    return _pad(text, size, fill, before=False)


def _pad(text: Argument, size: Argument, fill: Argument | None, *, before: bool) -> Compiled:
    a = string(text)
    n = constant_number(size, "the length", 0, LONGEST)
    pad = " " if fill is None else constant_string(fill, "the padding")
    padding = (pad * (n // len(pad) + 1))[:n] if pad else ""
    cut = a.value.str.slice(0, n)
    missing = (pl.lit(n, dtype=pl.Int64) - cut.str.len_chars().cast(pl.Int64)).fill_null(0)
    extra = pl.lit(padding).str.slice(pl.lit(0, dtype=pl.Int64), missing)
    return Compiled(pl.concat_str([extra, cut] if before else [cut, extra]), STRING, a.error)


def repeat(text: Argument, times: Argument) -> Compiled:
    """REPEAT."""
    a, n = string(text), constant_number(times, "the number of times", 0, 1_000)
    fits, own = _limited(_bytes(a.value) * n)
    value = per_value(pl.when(fits).then(a.value), lambda each: each * n, pl.String())
    return Compiled(value, STRING, in_turn([a], own))


def reverse(text: Argument) -> Compiled:
    """REVERSE: by character, including combining ones."""
    a = string(text)
    return Compiled(per_value(a.value, lambda value: value[::-1], pl.String()), STRING, a.error)


def md5_text(text: Argument) -> Compiled:
    """MD5 of the UTF-8 bytes."""
    a = string(text)
    digest = per_value(
        a.value, lambda value: md5(value.encode(), usedforsecurity=False).hexdigest(), pl.String()
    )
    return Compiled(digest, STRING, a.error)


def sha2(text: Argument, bits: Argument) -> Compiled:
    """SHA2 of the UTF-8 bytes."""
    a, size = string(text), constant_number(bits, "the number of bits", 0, 512)
    if size not in _SHA:
        raise bits.span.error(f"the number of bits is {size}; use one of {', '.join(map(str, _SHA))}")
    make = _SHA[size]
    return Compiled(
        per_value(a.value, lambda value: make(value.encode()).hexdigest(), pl.String()), STRING, a.error
    )


def like(operator: str, text: Argument, pattern: Argument, escape: str | None) -> Compiled:
    """LIKE, ILIKE, RLIKE with a constant pattern."""
    a = string(text)
    if pattern.type == NULL:
        return Compiled(pl.lit(None, dtype=pl.Boolean), BOOLEAN, a.error)
    wanted = constant_string(pattern, "the pattern")
    if operator == "RLIKE":
        return Compiled(_matches(a.value, wanted, pattern.span), BOOLEAN, a.error)
    if operator == "ILIKE":
        a, wanted = a._replace(value=a.value.str.to_lowercase()), wanted.lower()
    regex = like_pattern(wanted, "\\" if escape is None else escape, pattern.span)
    _check_size(regex, wanted, pattern.span)
    return Compiled(a.value.str.contains(regex), BOOLEAN, a.error)


def _check_size(regex: str, pattern: str, span: Span) -> None:
    """Reject a pattern that is too large to be compiled."""
    try:
        pl.select(pl.lit("").str.contains(regex))
    except pl.exceptions.ComputeError as error:
        raise span.error(f"the pattern {pattern[:100]!r} is too large; use shorter repetitions") from error


def _matches(text: pl.Expr, pattern: str, span: Span) -> pl.Expr:
    translator = RegexTranslator(pattern, span)
    regex = translator.translate()
    _check_size(regex, pattern, span)
    found = text.str.contains(regex)
    if translator.ends:
        found = found | text.str.replace(LAST_BREAK, "").str.contains(regex)
    return found
