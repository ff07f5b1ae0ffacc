"""The oracle of the window engine: slow, record by record, obviously right.

It keeps every record of every window in plain lists and recomputes the aggregates for each row. Where the
rules leave a choice, it interprets them as follows:

- C of the ingest clock is per stream and version, moves with every tick and needs no record to exist.
- Records counted as late include those that came too late; `warn` logs exactly the records counted as late.
- M and L of a key move with late and dropped records too, not with dead ones.
- Empty windows follow a window that got a record, as many in a row as `most_empty` says; a window that C had
  already passed when it came to follow one is not emitted as an empty one.
- Empty windows of a key end at the moment at which it is forgotten if ticks come all the time, whether or not
  a tick came then; otherwise a tick would change the output.
- An empty window that was emitted counts as emitted: a late record gives it revision 2.
- Keys of the ingest clock are never forgotten.
- An id has milliseconds, and microseconds only if they are not zero.
- A session emitted again as revision 2, 3, … does not list again the windows it replaced before.
- In `changes`, the rows of a session are those of all sessions that became it; the end of a count window is
  the time of its last record so far.
- Infinities follow IEEE 754: sums and averages as they add up, variance NaN.
- Keys without a clock are forgotten when a record, or a tick, comes `ttl_us` after their newest record.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal, NamedTuple

Value = Any  # of a column: int, float, Decimal, str, bool, date or None; of an aggregate also a list
Identity = tuple[int, int]  # stream, version
NEVER = -math.inf


@dataclass(frozen=True)
class Record:
    """One row of a batch."""

    stream: int
    key: str
    txid: int
    id: int
    created_us: int
    event_us: int | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    source: int = 1
    version: int = 1


@dataclass(frozen=True)
class Tick:
    """Every record created before `safe_us` stands before this."""

    safe_us: int


Event = Record | Tick


class Aggregate(NamedTuple):
    """An aggregate over the records of a window; the names are those of the engine's `Aggregate`."""

    function: str
    column: str | None
    name: str
    by: str | None = None  # the second input
    distinct: bool = False
    ignore_nulls: bool = False
    where: str | None = None
    rows: int | None = None
    parameter: float | int | None = None


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The requested windows of a stream, unchecked; the names are those of the engine's `WindowSpec`."""

    kind: Literal["tumbling", "sliding", "session", "count", "rows", "group"]
    duration_us: int | None = None
    slide_us: int | None = None
    gap_us: int | None = None
    size: int | None = None
    step: int | None = None
    clock: Literal["ingest", "event"] = "ingest"
    grace_us: int = 0
    idle_us: int | None = None
    late: Literal["drop", "warn", "process"] = "process"
    keep_us: int = 86_400_000_000
    emission: Literal["final", "changes"] = "final"
    emit_empty: bool = False
    aggregates: tuple[Aggregate, ...] = ()
    ttl_us: int | None = None

    @property
    def idle(self) -> int:
        """How long a key is idle before its windows close by the log's own time."""
        return max(self.grace_us, 10_000_000) if self.idle_us is None else self.idle_us


@dataclass(frozen=True)
class Row:
    """One row that comes out."""

    stream: int
    version: int
    key: str
    window_id: Any  # str; null for groups, as the next two
    start_us: Any  # int
    end_us: Any
    count: int
    revision: int
    sources: tuple[tuple[int, int, int, int, int], ...]  # source, first txid and id, last txid and id
    replaces: tuple[str, ...]  # sorted
    aggregates: Mapping[str, Value]
    #: Of the record that the row is for, in `changes`.
    time_us: int | None = None
    txid: int | None = None
    id: int | None = None


@dataclass(frozen=True)
class Late:
    """One line of the late log."""

    stream: int
    version: int
    key: str
    txid: int
    id: int
    time_us: int
    closed_us: float


@dataclass
class Output:
    """The complete output."""

    rows: list[Row] = field(default_factory=list)
    dead: list[tuple[int, int, str, int, int]] = field(default_factory=list)  # …, key, txid, id
    late_log: list[Late] = field(default_factory=list)
    late: Counter[Identity] = field(default_factory=Counter)
    dropped: Counter[Identity] = field(default_factory=Counter)
    open_windows: int = 0
    next_close_us: int | None = None  # the first safe time that would seal a window


def expected_output(specs: Mapping[Identity, Spec], events: Iterable[Event]) -> Output:
    """The expected output of the engine for these records and ticks."""
    given = Output()
    streams = {identity: KINDS[spec.kind](identity, spec, given) for identity, spec in specs.items()}
    for event in events:
        if isinstance(event, Tick):
            for stream in streams.values():
                stream.tick(event.safe_us)
        else:
            streams[event.stream, event.version].record(event)
    closings = [due for stream in streams.values() for due in stream.closings()]
    given.open_windows, given.next_close_us = len(closings), min(closings, default=None)
    return given


# Common to all kinds


class Stream:
    """One stream: processes records and ticks, writes to the output."""

    def __init__(self, identity: Identity, spec: Spec, given: Output) -> None:
        self.identity, self.spec, self.given = identity, spec, given

    def tick(self, safe_us: int) -> None:
        """Safe time has reached `safe_us`."""

    def record(self, record: Record) -> None:
        """The next record of the log."""
        raise NotImplementedError

    def closings(self) -> list[int]:
        """For each open window the safe time that would seal it."""
        return []

    def time(self, record: Record) -> int | None:
        """The time of a record; a record without one is dead."""
        if self.spec.clock == "ingest":
            return record.created_us
        if record.event_us is None:
            self.given.dead.append((*self.identity, record.key, record.txid, record.id))
        return record.event_us

    def window_id(self, key: str, start: int, end: int, at: Record | None = None) -> str:
        """The id of a window; `at` is the first record of a count window, the last one of a rows window."""
        stream, version = self.identity
        name = f"{stream}:{key}:{start // 1000}:{end // 1000}" + (f":v{version}" if version > 1 else "")
        if at:
            return f"{name}:{at.txid}-{at.id}"
        return name + (f":u{start % 1000}-{end % 1000}" if start % 1000 or end % 1000 else "")

    def emit(
        self,
        window_id: str | None,
        key: str,
        start: int | None,
        end: int | None,
        records: list[Record],
        revision: int,
        replaces: Iterable[str] = (),
        of: Record | None = None,
    ) -> None:
        """Write a row; `of` is the record that it is for."""
        stream, version = self.identity
        names: dict[str, Value] = {}
        for each in self.spec.aggregates:
            names |= aggregate(each, records[-each.rows :] if each.rows else records)
        self.given.rows.append(
            Row(
                *(stream, version, key, window_id, start, end, len(records), revision),
                sources(records) if window_id is not None else (),
                tuple(sorted(replaces)),
                names,
                *((None, None, None) if of is None else (self.time_of(of), of.txid, of.id)),
            )
        )

    def time_of(self, record: Record) -> int | None:
        return record.created_us if self.spec.clock == "ingest" else record.event_us


def position(record: Record) -> tuple[int, int]:
    """The position of a record in the log."""
    return (record.txid, record.id)


def sources(records: list[Record]) -> tuple[tuple[int, int, int, int, int], ...]:
    """First and last position of each source."""
    by_source: dict[int, list[tuple[int, int]]] = {}
    for record in records:
        by_source.setdefault(record.source, []).append(position(record))
    return tuple((source, *min(where), *max(where)) for source, where in sorted(by_source.items()))


# Tumbling, sliding and session windows: they have a clock


@dataclass(eq=False)
class Window:
    """A window or session with its records in log order; sealed once the key's C has reached its end."""

    start: int
    end: int
    records: list[Record] = field(default_factory=list)
    revision: int = 0  # rows emitted so far
    replaces: list[str] = field(default_factory=list)


@dataclass
class Key:
    """A key, its clock and the windows that are open or still remembered."""

    closed: float = NEVER  # C
    newest: float = NEVER  # M
    last: float = NEVER  # L
    windows: list[Window] = field(default_factory=list)
    filled: set[int] = field(default_factory=set)  # starts of all windows that ever got a record

    def open(self) -> list[Window]:
        return [window for window in self.windows if window.end > self.closed]


class Clocked(Stream):
    """Windows that a clock seals."""

    def __init__(self, identity: Identity, spec: Spec, given: Output) -> None:
        super().__init__(identity, spec, given)
        self.closed: float = NEVER  # C of the ingest clock
        self.keys: dict[str, Key] = {}

    def add(self, key: Key, record: Record, time: int) -> None:
        """Judge a record and put it where it belongs."""
        raise NotImplementedError

    def last_end(self, time: float) -> float:
        """The end of the last window that a record of this time is in."""
        raise NotImplementedError

    def empty_windows(self, key: Key, until: float) -> list[Window]:
        """The windows without records that come out when C moves from `key.closed` to `until`."""
        return []

    def tick(self, safe_us: int) -> None:
        if self.spec.clock == "ingest":
            self.closed = max(self.closed, safe_us - self.spec.grace_us)
            for name, key in self.keys.items():
                self.close(name, key, self.closed)
        else:
            for name in list(self.keys):
                self.silence(name, safe_us)

    def record(self, record: Record) -> None:
        time = self.time(record)
        if time is None:
            return
        if self.spec.clock == "ingest":
            self.add(self.keys.setdefault(record.key, Key(closed=self.closed)), record, time)
            return
        if record.key in self.keys:
            self.silence(record.key, record.created_us)
        key = self.keys.setdefault(record.key, Key())
        self.add(key, record, time)
        key.newest = max(key.newest, time)
        key.last = max(key.last, record.created_us)
        self.close(record.key, key, max(key.closed, key.newest - self.spec.grace_us))

    def silence(self, name: str, now: int) -> None:
        """The log's own time has reached `now` without a record of this key."""
        key, grace = self.keys[name], self.spec.grace_us
        if now - key.last < self.spec.idle:
            return
        forgotten_at = max([key.last + self.spec.keep_us, *(window.end + grace for window in key.open())])
        until = min(now, forgotten_at) - grace
        if not self.spec.emit_empty:
            until = min(until, self.last_end(key.newest))
        self.close(name, key, max(key.closed, until))
        if now >= forgotten_at:
            del self.keys[name]

    def close(self, name: str, key: Key, closed: float) -> None:
        """Advance C, seal the windows it passes, expire the keys far behind it."""
        if self.spec.emission == "final":
            passed = [window for window in key.open() if window.end <= closed]
            empty = self.empty_windows(key, closed)
            for window in sorted(passed + empty, key=lambda window: window.end):
                self.emit_window(name, window)
            key.windows += empty
        key.closed = closed
        key.windows = [window for window in key.windows if window.end > closed - self.spec.keep_us]

    def emit_window(self, name: str, window: Window, of: Record | None = None) -> None:
        window.revision += 1
        self.emit(
            self.window_id(name, window.start, window.end),
            *(name, window.start, window.end, window.records, window.revision, window.replaces, of),
        )
        window.replaces = []

    def count_late(self, key: Key, record: Record, time: int, *, dropped: bool) -> None:
        self.given.late[self.identity] += 1
        self.given.dropped[self.identity] += dropped
        if self.spec.late == "warn":
            self.given.late_log.append(
                Late(*self.identity, record.key, record.txid, record.id, time, key.closed)
            )

    def closings(self) -> list[int]:
        due = []
        for key in self.keys.values():
            for window in key.open():
                by_time = window.end + self.spec.grace_us
                silent = by_time if self.spec.clock == "ingest" else key.last + self.spec.idle
                due.append(int(max(by_time, silent)))
        return due


class Aligned(Clocked):
    """Tumbling and sliding windows: [start, start + duration) for every multiple of the slide."""

    most_empty = 10_000  # in a row

    def __init__(self, identity: Identity, spec: Spec, given: Output) -> None:
        super().__init__(identity, spec, given)
        assert spec.duration_us is not None
        self.duration = spec.duration_us
        self.slide = self.duration if spec.slide_us is None else spec.slide_us

    def last_end(self, time: float) -> float:
        return time // self.slide * self.slide + self.duration

    def add(self, key: Key, record: Record, time: int) -> None:
        late = dropped = False
        start = time // self.slide * self.slide  # the last window that contains the record
        while start + self.duration > time:
            end = start + self.duration
            is_late = end <= key.closed
            too_late = end <= key.closed - self.spec.keep_us
            late = late or is_late
            if too_late or (is_late and self.spec.late == "drop"):
                dropped = True
            else:
                window = self.window(key, start)
                window.records.append(record)
                key.filled.add(start)
                if self.spec.emission == "changes":
                    self.emit_window(record.key, window, record)
                elif is_late:
                    self.emit_window(record.key, window)
            start -= self.slide
        if late:
            self.count_late(key, record, time, dropped=dropped)

    def window(self, key: Key, start: int) -> Window:
        for window in key.windows:
            if window.start == start:
                return window
        key.windows.append(Window(start, start + self.duration))
        return key.windows[-1]

    def empty_windows(self, key: Key, until: float) -> list[Window]:
        if not self.spec.emit_empty:
            return []
        empty = []
        for filled in key.filled:
            for start in range(filled + self.slide, filled + (self.most_empty + 1) * self.slide, self.slide):
                if start in key.filled or start + self.duration > until:
                    break
                if start + self.duration > key.closed:
                    empty.append(Window(start, start + self.duration))
        return empty


class Session(Clocked):
    """Sessions: the union of the intervals [time, time + gap) that touch one another."""

    def last_end(self, time: float) -> float:
        assert self.spec.gap_us is not None
        return time + self.spec.gap_us

    def add(self, key: Key, record: Record, time: int) -> None:
        assert self.spec.gap_us is not None
        end = time + self.spec.gap_us
        touched = [window for window in key.windows if time < window.end and window.start < end]
        late = end <= key.closed and all(window.end <= key.closed for window in touched)
        too_late = end <= key.closed - self.spec.keep_us
        if late:
            dropped = too_late or self.spec.late == "drop"
            self.count_late(key, record, time, dropped=dropped)
            if dropped:
                return

        session = Window(
            min([time, *(window.start for window in touched)]),
            max([end, *(window.end for window in touched)]),
            sorted([record, *(each for window in touched for each in window.records)], key=position),
        )
        same = [window for window in touched if (window.start, window.end) == (session.start, session.end)]
        ids = {self.window_id(record.key, window.start, window.end): window for window in touched}
        if self.spec.emission == "changes":
            session.revision = sum(window.revision for window in touched)
            mine = self.window_id(record.key, session.start, session.end)
            session.replaces = [name for name in ids if name != mine]
        elif late and same:
            session.revision = same[0].revision
        else:
            sealed = [name for name, window in ids.items() if window.end <= key.closed]
            session.replaces = sealed + [name for window in touched for name in window.replaces]

        key.windows = [window for window in key.windows if window not in touched] + [session]
        if late or self.spec.emission == "changes":
            self.emit_window(record.key, session)


# Count and rows windows: no clock


class Numbered(Stream):
    """Windows over the records of a key as they are numbered by the log."""

    telling = 0  # which of a window's records tells it from others

    def __init__(self, identity: Identity, spec: Spec, given: Output) -> None:
        super().__init__(identity, spec, given)
        self.size = spec.size or 0
        self.step = self.size if spec.step is None else spec.step
        self.keys: dict[str, list[tuple[int, Record]]] = {}  # time and record, in log order

    def tick(self, safe_us: int) -> None:
        for key in list(self.keys):
            self.expire(key, safe_us)

    def expire(self, key: str, now: int) -> None:
        """Forget a key whose newest record was created too long before `now`."""
        records = self.keys.get(key)
        if records and self.spec.ttl_us is not None:
            newest = max(record.created_us for _, record in records)
            if now - newest >= self.spec.ttl_us:
                del self.keys[key]

    def record(self, record: Record) -> None:
        time = self.time(record)
        if time is not None:
            self.expire(record.key, record.created_us)
            records = self.keys.setdefault(record.key, [])
            records.append((time, record))
            self.added(record.key, records)

    def added(self, key: str, records: list[tuple[int, Record]]) -> None:
        """The last of these records is new."""
        raise NotImplementedError

    def emit_part(self, key: str, part: list[tuple[int, Record]], revision: int) -> None:
        start, end = part[0][0], part[-1][0]
        window_id = self.window_id(key, start, end, part[self.telling][1])
        of = part[-1][1] if self.spec.emission == "changes" else None
        self.emit(window_id, key, start, end, [record for _, record in part], revision, of=of)


class Count(Numbered):
    """Window j holds the records j * step … j * step + size - 1."""

    def added(self, key: str, records: list[tuple[int, Record]]) -> None:
        for begin in range(0, len(records), self.step):
            part = records[begin:]
            if len(part) > self.size:
                continue
            if self.spec.emission == "changes":
                self.emit_part(key, part, revision=len(part))
            elif len(part) == self.size:
                self.emit_part(key, part, revision=1)


class Rows(Numbered):
    """Each record with the ones before it, `size` in all."""

    telling = -1

    def added(self, key: str, records: list[tuple[int, Record]]) -> None:
        self.emit_part(key, records[-self.size :], revision=1)


class Group(Numbered):
    """All records of a key."""

    def added(self, key: str, records: list[tuple[int, Record]]) -> None:
        if self.spec.emission == "changes":
            of = records[-1][1]
            self.emit(None, key, None, None, [record for _, record in records], len(records), of=of)


KINDS: dict[str, type[Stream]] = {
    "tumbling": Aligned,
    "sliding": Aligned,
    "session": Session,
    "count": Count,
    "rows": Rows,
    "group": Group,
}


# Aggregates

FAILED = "failed"  # stands for the reason of a failure


class Overflow(Exception):
    """A value that does not fit its type."""


def aggregate(each: Aggregate, records: list[Record]) -> dict[str, Value]:
    """The columns of an aggregate over the records of a window, in log order."""
    counted = [record for record in records if each.where is None or record.values[each.where]]
    column = [1 if each.column is None else record.values[each.column] for record in counted]
    try:
        if each.by is not None:
            order = [record.values[each.by] for record in counted]
            return {each.name: extreme_by(each.function == "max_by", column, order)}
        value = over_all(each, column) if each.function in KEEPS_NULLS else over_known(each, column)
        return {each.name: value, f"{each.name}!": None}
    except Overflow:
        return {each.name: None, f"{each.name}!": FAILED}


KEEPS_NULLS = ("first", "last", "lag")


def over_all(each: Aggregate, column: list[Value]) -> Value:
    """Functions to which NULL is a value."""
    if each.function == "lag":
        assert isinstance(each.parameter, int)
        return column[-1 - each.parameter] if len(column) > each.parameter else None
    values = [value for value in column if value is not None] if each.ignore_nulls else column
    if not values:
        return None
    return values[0] if each.function == "first" else values[-1]


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def rank(value: Value) -> tuple[bool, Value]:
    """NaN is above all numbers."""
    return (True, 0) if is_nan(value) else (False, value)


def extreme_by(largest: bool, column: list[Value], order: list[Value]) -> Value:
    """The value where the order is largest or smallest; of equals the last."""
    best: tuple[Value, Value] | None = None
    for value, by in zip(column, order, strict=True):
        if by is None:
            continue
        if best is None or (rank(by) >= rank(best[0]) if largest else rank(by) <= rank(best[0])):
            best = (by, value)
    return None if best is None else best[1]


def unique(values: list[Value]) -> list[Value]:
    """Each value where it came first; NaN is one value, and -0.0 is 0.0."""
    return list(
        {rank(value): value + 0.0 if isinstance(value, float) else value for value in values}.values()
    )


def over_known(each: Aggregate, column: list[Value]) -> Value:
    """Functions that leave NULL out."""
    values = [value for value in column if value is not None]
    function = each.function
    if function == "count":
        return len(unique(values)) if each.distinct else len(values)
    if function in ("collect_list", "collect_set"):
        return values if function == "collect_list" else unique(values)
    if not values:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=rank)
    if function in ("median", "percentile"):
        return percentile(
            sorted(map(float, values), key=rank), 0.5 if each.parameter is None else each.parameter
        )
    if function in SAMPLES and len(values) < 2:
        return None
    if not all(map(math.isfinite, values)):
        # a sum that is NaN or infinite is the average as well
        return sum(map(float, values)) if function in ("sum", "avg") else math.nan
    return finite(each, values)


SAMPLES = ("var_samp", "stddev_samp")


def percentile(values: list[float], share: float) -> float:
    """The value at a share of the way through sorted values."""
    rank = (len(values) - 1) * share
    low, high = values[math.floor(rank)], values[math.ceil(rank)]
    if low == high or (is_nan(low) and is_nan(high)):
        return low
    return (math.ceil(rank) - rank) * low + (rank - math.floor(rank)) * high


#: Digits of decimal columns, and those behind the point.
DIGITS = {"price": (12, 2), "huge": (38, 4)}


def finite(each: Aggregate, values: list[Any]) -> Value:
    """Sum, average, variance or deviation in exact arithmetic, rounded once at the end."""
    function, column = each.function, each.column or ""
    exact = [Fraction(value) for value in values]
    total = sum(exact, Fraction(0))
    if function == "sum":
        if isinstance(values[0], float):
            return float(total)
        if isinstance(values[0], int):
            return within(int(total), 2**63 - (total > 0))
        digits, scale = DIGITS[column]
        return rounded(total, min(digits + 10, 38), scale)
    mean = total / len(exact)
    if function == "avg":
        if column in DIGITS:
            digits, scale = DIGITS[column]
            rounded(total, min(digits + 10, 38), scale)
            return rounded(mean, min(digits + 4, 38), scale + 4)
        return float(mean)
    less = 1 if function in SAMPLES else 0
    variance = sum(((value - mean) ** 2 for value in exact), Fraction(0)) / (len(exact) - less)
    return float(variance) if function.startswith("var") else math.sqrt(variance)


def within(value: int, most: int) -> int:
    if abs(value) > most:
        raise Overflow
    return value


def rounded(value: Fraction, digits: int, scale: int) -> Decimal:
    """A decimal with this many digits, `scale` of them after the point; rounded half up."""
    number = math.floor(abs(value) * 10**scale + Fraction(1, 2))
    within(number, 10**digits - 1)
    with localcontext(prec=60):
        return Decimal(number if value >= 0 else -number).scaleb(-scale)
