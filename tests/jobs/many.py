"""Many jobs with different statements, and their expected rows, computed record by record."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

SCHEMA = "create stream {queue}_s (user string, n bigint, at timestamp) with (queue = '{queue}')"
BEGIN_MS = 1_769_860_800_000
USERS = 10


class Click(NamedTuple):
    """A record; those of a queue are one second apart."""

    user: str
    n: int

    def payload(self) -> dict[str, Any]:
        """The message."""
        return {"user": self.user, "n": self.n, "at": BEGIN_MS + 1000 * self.n}


def clicks(count: int) -> list[Click]:
    """The first records of a queue."""
    return [Click(f"u{n * n % USERS}", n) for n in range(count)]


def statement(number: int, name: str, queue: str, idle: str = "10s") -> str:
    """A job unlike all others; `idle` is the silence that seals the last windows of a key."""
    source = f"{queue}_s"
    silence = f" with (idle_timeout = '{idle}')" if number % 5 in (1, 4) else ""
    select = [
        f"select user, n + {number} as v from {source} where n % 7 <> {number % 7}",
        f"select user, sum(n + {number}) as v, count(*) as c from {source} group by user"
        f" window tumbling(at, {_seconds(number)}s)",
        f"select user, max(n * {number}) as v, count(*) as c from {source} group by user",
        f"select user, min(n - {number}) as v, count(*) as c from {source} group by user"
        f" window count({_size(number)})",
        f"select user, sum(n - {number}) as v, count(*) as c from {source} where n >= {number % 7}"
        f" group by user window tumbling(at, {_seconds(number)}s) emit changes",
    ][number % 5]
    return f"create stream {name} as {select}{silence}"


def expected(number: int, records: list[Click], *, is_sealed: bool) -> Counter[tuple[Any, ...]]:
    """The values of all rows of a job, once its records are read; and the last windows sealed, or not."""
    by_user: dict[str, list[int]] = defaultdict(list)
    for user, n in records:
        by_user[user].append(n)
    kind = number % 5
    if kind == 0:
        return Counter((user, n + number) for user, n in records if n % 7 != number % 7)
    found: Counter[tuple[Any, ...]] = Counter()
    for user, values in by_user.items():
        if kind == 2:
            for count in range(1, len(values) + 1):
                found[user, max(value * number for value in values[:count]), count] += 1
        elif kind == 3:
            size = _size(number)
            for first in range(0, len(values) - size + 1, size):
                found[user, min(values[first : first + size]) - number, size] += 1
        else:
            found += _windows(number, user, values, is_sealed)
    return found


def _windows(number: int, user: str, values: list[int], is_sealed: bool) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    is_final = number % 5 == 1
    kept = values if is_final else [value for value in values if value >= number % 7]
    windows: dict[int, list[int]] = defaultdict(list)
    for value in kept:
        windows[(BEGIN_MS // 1000 + value) // _seconds(number)].append(value)
    last = max(windows, default=0)
    for window, inside in windows.items():
        if is_final and (is_sealed or window != last):
            found[user, sum(inside) + number * len(inside), len(inside)] += 1
        if not is_final:
            for count in range(1, len(inside) + 1):
                found[user, sum(inside[:count]) - number * count, count] += 1
    return found


def values(rows: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """The values of rows."""
    return Counter(tuple(row.values()) for row in rows)


def _seconds(number: int) -> int:
    return 10 + number % 50


def _size(number: int) -> int:
    return 2 + number % 6
