"""Messages as data: what they hold, and how to filter, group and aggregate them."""

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
    """What `aggregate` takes."""

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
    """A message: its payload and headers, and where and when it was stored."""

    id: str
    transaction_id: str
    queue: str
    partition: str
    data: Any
    created_at: datetime
    headers: dict[str, str] = {}

    @property
    def payload(self) -> Any:
        """The same as `data`."""
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
        """The messages for which `keep` is true."""
        return Messages(message for message in self if keep(message))

    def map(self, make: Callable[[M_co], T]) -> list[T]:
        """What `make` returns for each message."""
        return [make(message) for message in self]

    def values(self, path: str) -> list[Any]:
        """The values at a path such as `data.user`, of the messages that have one."""
        at = Path(path)
        return [value for message in self if (value := at.of(message)) is not MISSING]

    def group_by(self, path: str) -> Groups[Messages[M_co]]:
        """The messages by the value at a path; those without one are in the group None."""
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
        """What was asked for: `aggregate(count=True, sum="data.amount")` is `{"count": 3, "sum": 12.5}`.

        A list of paths gives a value for each: `sum=["data.a", "data.b"]` is `{"sum": {"data.a": 1, …}}`.
        Sums, averages, extremes and percentiles are over the numbers at a path; messages without a number
        there do not count. Without any number the answer is None, and 0 for a sum. `distinct` is the number
        of different values.
        """
        wanted = {"sum": sum, "avg": avg, "min": min, "max": max, "p50": p50, "p95": p95, "p99": p99}
        answer: dict[str, Any] = {"count": len(self)} if count else {}
        for name, paths in wanted.items():
            if paths:
                answer[name] = self._at(paths, partial(_over_numbers, name))
        if distinct:
            answer["distinct"] = self._at(distinct, lambda values: len({token(value) for value in values}))
        return answer

    def _at(self, paths: Paths, made_of: Callable[[list[Any]], Any]) -> Any:
        """What is made of the values at a path; of several, by path."""
        if isinstance(paths, str):
            return made_of(self.values(paths))
        return {path: made_of(self.values(path)) for path in paths}

    def to_arrow(self) -> pyarrow.Table:
        """A table: a row for each message, a column for each field of the payloads (`data.user`).

        Payloads that are no objects are in a column `data`. A column whose values have no common type has
        them as JSON text. Headers are in a column `headers` (a map) when a message has some.
        """
        with _naming_the_fix():
            from .tables import to_arrow
        return to_arrow(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas frame."""
        with _naming_the_fix():
            return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars frame."""
        with _naming_the_fix():
            import polars
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame


@contextmanager
def _naming_the_fix() -> Iterator[None]:
    """Say how to install a package that only tables need."""
    try:
        yield
    except ModuleNotFoundError as missing:
        text = f"{missing.name} is not installed, and tables need it: pip install {missing.name}"
        raise ModuleNotFoundError(text, name=missing.name) from None


def _over_numbers(name: str, values: list[Any]) -> Any:
    return OVER_NUMBERS[name](numbers(values))
