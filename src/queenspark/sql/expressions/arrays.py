"""Arrays: indexes count from 0, as in Spark; an index out of bounds is an error."""

from __future__ import annotations

import polars as pl

from ..source import Span
from ..types import BOOLEAN, INT, NULL
from .compiled import Argument, Compiled, all_of, fail_where, in_turn
from .conversion import same_type


def element(operand: Compiled, index: Compiled, span: Span) -> Compiled:
    """`array[i]`."""
    kind = operand.type.element
    if kind is None:
        raise span.error(f"only arrays have elements, found {operand.type}")
    if not index.type.is_integer:
        raise span.error(f"the index must be a whole number, found {index.type}; use CAST")
    at = index.value.cast(pl.Int64)
    size = operand.value.list.len().cast(pl.Int64)
    inside = (at >= 0) & (at < size)
    own = fail_where(at.is_not_null() & ~inside, "the array index is out of bounds")
    value = operand.value.list.get(pl.when(inside).then(at), null_on_oob=True)
    return Compiled(value, kind, in_turn([operand, index], own))


def size(argument: Argument) -> Compiled:
    """SIZE: the number of elements."""
    if argument.type.element is None:
        raise argument.span.error(f"expected an ARRAY, found {argument.type}")
    a = argument.compiled
    return Compiled(a.value.list.len().cast(pl.Int32), INT, a.error)


def array_contains(array: Argument, value: Argument) -> Compiled:
    """ARRAY_CONTAINS: NULL if it is not found and the array contains a NULL."""
    element_type = array.type.element
    if element_type is None or value.type == NULL:
        raise array.span.error(f"expected an ARRAY and a value, found {array.type} and {value.type}")
    probe = Compiled(pl.lit(None, dtype=element_type.column), element_type)
    wanted = same_type([probe, value.compiled], value.span, "the array elements and the value")[1]
    if wanted.type != element_type:
        raise value.span.error(f"the array has elements of {element_type}, found {value.type}; use CAST")
    a = array.compiled
    found = a.value.list.contains(wanted.value)
    unknown = a.value.list.eval(pl.element().is_null()).list.any() & ~found
    answer = pl.when(a.value.is_not_null() & wanted.value.is_not_null() & ~unknown).then(found)
    return Compiled(answer, BOOLEAN, all_of([a, wanted]))
