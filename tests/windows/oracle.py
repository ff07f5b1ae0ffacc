"""The judge of the window engine: slow, record by record, obviously right.

It keeps every record of every window in plain lists and computes the aggregates anew for each row. Where the
rules leave a choice, it reads them so:

- C of the ingest clock is per stream and version, moves with every tick and needs no record to exist.
- Records counted as late include those that came too late; `warn` logs exactly the records counted as late.
- M and L of a key move with late and dropped records too, not with dead ones.
- Empty windows follow a window that got a record, as many in a row as `most_empty` says; a window that C had
  already passed when it came to follow one is not emitted as an empty one.
- Empty windows of a key end at the moment at which it is forgotten if ticks come all the time, whether or not
  a tick came then; otherwise a tick would change what is emitted.
- An empty window that was emitted counts as emitted: a late record gives it revision 2.
- Keys of the ingest clock are never forgotten.
- An id holds milliseconds, and what is beyond them only where there is something.
- A session emitted again as revision 2, 3, … repeats nothing of what it replaced before.
- In `changes`, the rows of a session are those of all sessions that became it; the end of a count window is
  the time of its last record so far.
- Infinities follow IEEE 754: sums and averages as they add up, variance NaN.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Literal

Value = int | float | Decimal | None
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


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a stream asks for, unchecked; the names are those of the engine's `WindowSpec`."""

    kind: Literal["tumbling", "sliding", "session", "count", "rows"]
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
    aggregates: tuple[tuple[str, str, str], ...] = ()  # function, column, name

    @property
    def idle(self) -> int:
        """How long a key is silent before its windows close by the log's own time."""
        return max(self.grace_us, 10_000_000) if self.idle_us is None else self.idle_us


@dataclass(frozen=True)
class Row:
    """One row that comes out."""

    stream: int
    version: int
    key: str
    window_id: str
    start_us: int
    end_us: int
    count: int
    revision: int
    sources: tuple[tuple[int, int, int, int, int], ...]  # source, first txid and id, last txid and id
    replaces: tuple[str, ...]  # sorted
    aggregates: Mapping[str, Value]


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
class Answer:
    """Everything that comes out."""

    rows: list[Row] = field(default_factory=list)
    dead: list[tuple[int, int, str, int, int]] = field(default_factory=list)  # …, key, txid, id
    late_log: list[Late] = field(default_factory=list)
    late: Counter[Identity] = field(default_factory=Counter)
    dropped: Counter[Identity] = field(default_factory=Counter)
    open_windows: int = 0
    next_close_us: int | None = None  # the first safe time that would seal a window


def answer(specs: Mapping[Identity, Spec], events: Iterable[Event]) -> Answer:
    """What the engine has to say to these records and ticks."""
    given = Answer()
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


# What all kinds share


class Stream:
    """One stream: takes records and ticks, writes into the answer."""

    def __init__(self, identity: Identity, spec: Spec, given: Answer) -> None:
        self.identity, self.spec, self.given = identity, spec, given

    def tick(self, safe_us: int) -> None:
        """Safe time has come to `safe_us`."""

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
        window_id: str,
        key: str,
        start: int,
        end: int,
        records: list[Record],
        revision: int,
        replaces: Iterable[str] = (),
    ) -> None:
        """Write a row."""
        stream, version = self.identity
        names = {
            name: aggregate(function, [record.values[column] for record in records])
            for function, column, name in self.spec.aggregates
        }
        self.given.rows.append(
            Row(
                *(stream, version, key, window_id, start, end, len(records), revision),
                sources(records),
                tuple(sorted(replaces)),
                names,
            )
        )


def position(record: Record) -> tuple[int, int]:
    """Where a record stands in the log."""
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

    def __init__(self, identity: Identity, spec: Spec, given: Answer) -> None:
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
        """The log's own time has come to `now` without a record of this key."""
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
        """Move C, seal what it passes, forget what lies far behind it."""
        if self.spec.emission == "final":
            passed = [window for window in key.open() if window.end <= closed]
            empty = self.empty_windows(key, closed)
            for window in sorted(passed + empty, key=lambda window: window.end):
                self.emit_window(name, window)
            key.windows += empty
        key.closed = closed
        key.windows = [window for window in key.windows if window.end > closed - self.spec.keep_us]

    def emit_window(self, name: str, window: Window) -> None:
        window.revision += 1
        self.emit(
            self.window_id(name, window.start, window.end),
            *(name, window.start, window.end, window.records, window.revision, window.replaces),
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

    def __init__(self, identity: Identity, spec: Spec, given: Answer) -> None:
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
                if is_late or self.spec.emission == "changes":
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

    def __init__(self, identity: Identity, spec: Spec, given: Answer) -> None:
        super().__init__(identity, spec, given)
        assert spec.size is not None
        self.size = spec.size
        self.step = self.size if spec.step is None else spec.step
        self.keys: dict[str, list[tuple[int, Record]]] = {}  # time and record, in log order

    def record(self, record: Record) -> None:
        time = self.time(record)
        if time is not None:
            records = self.keys.setdefault(record.key, [])
            records.append((time, record))
            self.added(record.key, records)

    def added(self, key: str, records: list[tuple[int, Record]]) -> None:
        """The last of these records is new."""
        raise NotImplementedError

    def emit_part(self, key: str, part: list[tuple[int, Record]], revision: int) -> None:
        start, end = part[0][0], part[-1][0]
        window_id = self.window_id(key, start, end, part[self.telling][1])
        self.emit(window_id, key, start, end, [record for _, record in part], revision)


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


KINDS: dict[str, type[Stream]] = {
    "tumbling": Aligned,
    "sliding": Aligned,
    "session": Session,
    "count": Count,
    "rows": Rows,
}


# Aggregates


def aggregate(function: str, column: list[Value]) -> Value:
    """One aggregate over the values of a window's records, in log order."""
    values = [value for value in column if value is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    if function == "first":
        return values[0]
    if function == "last":
        return values[-1]
    numbers = [value for value in values if not math.isnan(value)]
    if function == "min":
        return min(numbers) if numbers else math.nan
    if function == "max":
        return max(numbers) if len(numbers) == len(values) else math.nan
    if function in ("variance", "stddev") and len(values) < 2:
        return None
    if not all(map(math.isfinite, values)):
        # a sum that is NaN or infinite is the average as well
        return math.nan if function in ("variance", "stddev") else sum(map(float, values))
    return finite(function, values)


def finite(function: str, values: list[int | float | Decimal]) -> Value:
    """Sum, average, variance or deviation in exact arithmetic, rounded once at the end."""
    exact = [Fraction(value) for value in values]
    total = sum(exact, Fraction(0))
    if function == "sum":
        if isinstance(values[0], float):
            return float(total)
        with localcontext(prec=60):
            return Decimal(total.numerator) / Decimal(total.denominator)
    mean = total / len(exact)
    if function == "avg":
        return float(mean)
    variance = sum(((value - mean) ** 2 for value in exact), Fraction(0)) / (len(exact) - 1)
    return float(variance) if function == "variance" else math.sqrt(variance)
