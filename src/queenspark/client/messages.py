"""Messages as data: fields, filtering, grouping and aggregation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, overload

import msgspec

from .aggregation import OVER_NUMBERS, Groups, numbers, token
from .paths import MISSING, Path

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

T = TypeVar("T")
Paths = str | Sequence[str]


class Wanted(TypedDict, total=False):
    """The arguments of `aggregate`."""

    count: bool
    sum: Paths
    avg: Paths
    min: Paths
    max: Paths
    p50: Paths
    p95: Paths
    p99: Paths
    distinct: Paths


class Message(msgspec.Struct, rename="camel", kw_only=True):
    """A message: payload, headers, partition, and time of storage."""

    id: str
    transaction_id: str
    queue: str
    partition: str
    data: Any
    created_at: datetime
    headers: dict[str, str] = {}

    @property
    def payload(self) -> Any:
        """Alias of `data`."""
        return self.data


M_co = TypeVar("M_co", bound=Message, covariant=True)


class Messages(Sequence[M_co], Generic[M_co]):
    """Messages in log order."""

    def __init__(self, messages: Iterable[M_co]) -> None:
        self._messages = list(messages)

    @overload
    def __getitem__(self, index: int) -> M_co: ...
    @overload
    def __getitem__(self, index: slice) -> list[M_co]: ...
    def __getitem__(self, index: int | slice) -> M_co | list[M_co]:
        return self._messages[index]

    def __iter__(self) -> Iterator[M_co]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<{len(self)} messages>"

    def filter(self, keep: Callable[[M_co], object]) -> Messages[M_co]:
        """Return the messages for which `keep` is true."""
        return Messages(message for message in self if keep(message))

    def map(self, make: Callable[[M_co], T]) -> list[T]:
        """Return the result of `make` for each message."""
        return [make(message) for message in self]

    def values(self, path: str) -> list[Any]:
        """Return the values at a path, for instance `data.user`; messages without a value are skipped."""
        at = Path(path)
        return [value for message in self if (value := at.of(message)) is not MISSING]

    def group_by(self, path: str) -> Groups[Messages[M_co]]:
        """Group the messages by the value at a path; those without one are in the group None."""
        at = Path(path)
        groups: Groups[Messages[M_co]] = Groups()
        for message in self:
            value = at.of(message)
            group: Messages[M_co] = groups.add(None if value is MISSING else value, lambda: Messages([]))
            group._messages.append(message)
        return groups

    def aggregate(
        self,
        *,
        count: bool = False,
        sum: Paths = (),  # noqa: A002 - as in SQL
        avg: Paths = (),
        min: Paths = (),  # noqa: A002
        max: Paths = (),  # noqa: A002
        p50: Paths = (),
        p95: Paths = (),
        p99: Paths = (),
        distinct: Paths = (),
    ) -> dict[str, Any]:
        """Compute aggregates: `aggregate(count=True, sum="data.amount")` is `{"count": 3, "sum": 12.5}`.

        A list of paths gives one value per path: `sum=["data.a", "data.b"]` is `{"sum": {"data.a": 1, …}}`.
        Sums, averages, extremes and percentiles are computed over the numbers at a path; other messages are
        ignored. Without any number the result is None, and 0 for a sum. `distinct` is the number of distinct
        values.
        """
        wanted = {"sum": sum, "avg": avg, "min": min, "max": max, "p50": p50, "p95": p95, "p99": p99}
        result: dict[str, Any] = {"count": len(self)} if count else {}
        for name, paths in wanted.items():
            if paths:
                result[name] = self._at(paths, partial(_over_numbers, name))
        if distinct:
            result["distinct"] = self._at(distinct, lambda values: len({token(value) for value in values}))
        return result

    def _at(self, paths: Paths, made_of: Callable[[list[Any]], Any]) -> Any:
        """Apply an aggregate to the values at one path, or at each of several."""
        if isinstance(paths, str):
            return made_of(self.values(paths))
        return {path: made_of(self.values(path)) for path in paths}

    def to_arrow(self) -> pyarrow.Table:
        """Return a table with one row per message and one column per payload field (`data.user`).

        Payloads that are not objects go to a column `data`. Columns of mixed types hold JSON text. Headers,
        if any, go to a map column `headers`.
        """
        with _naming_the_fix():
            from .tables import to_arrow
        return to_arrow(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas frame."""
        with _naming_the_fix():
            return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars frame."""
        with _naming_the_fix():
            import polars
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame


@contextmanager
def _naming_the_fix() -> Iterator[None]:
    """Turn a missing optional package into an error with the install command."""
    try:
        yield
    except ModuleNotFoundError as missing:
        text = f"{missing.name} is not installed, and tables need it: pip install {missing.name}"
        raise ModuleNotFoundError(text, name=missing.name) from None


def _over_numbers(name: str, values: list[Any]) -> Any:
    return OVER_NUMBERS[name](numbers(values))
