"""Hypothesis strategies: streams of records and ticks, and the specs that they are judged by.

Times are drawn on a scale of milliseconds, so that a few dozen records cross windows, graces, silences and
the end of memory many times.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, localcontext
from itertools import chain
from typing import Any, Literal

from hypothesis import strategies as st

from tests.windows.oracle import Aggregate, Event, Identity, Record, Spec, Tick, Value

Emission = Literal["final", "changes"]
LatePolicy = Literal["drop", "warn", "process"]
Clock = Literal["ingest", "event"]

EMISSIONS: tuple[Emission, ...] = ("final", "changes")
MS = 1_000
FAR = 10**17  # the year 5138, and as far back
IDENTITIES: tuple[Identity, ...] = ((1, 1), (1, 2), (2, 1), (40_000_000_000, 3))
KEYS = ("a", "b", "", "k:1", "Zürich")
NUMBERS = ("amount", "units", "score", "price", "huge", "small")
COLUMNS = (*NUMBERS, "label", "day", "flag")
MOMENTS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
LISTS = ("median", "percentile", "collect_list", "collect_set")


def _numbers(function: str) -> tuple[str, ...]:
    """The columns that a function of numbers is tried with."""
    # the variance of numbers with dozens of digits is not a question for floating point
    return ("units", "score", "price", "small") if function in MOMENTS else NUMBERS


@st.composite
def aggregates(draw: st.DrawFn, kind: str, emission: Emission, size: int) -> tuple[Aggregate, ...]:
    """Up to four aggregates that a spec can have."""
    functions = [
        "count",
        "distinct",
        "sum",
        "avg",
        "min",
        "max",
        "first",
        "last",
        "min_by",
        "max_by",
        *MOMENTS,
    ]
    functions += LISTS if emission == "final" else []
    functions += ["lag"] if kind == "rows" else []
    chosen = []
    for number, drawn in enumerate(draw(st.lists(st.sampled_from(functions), max_size=4))):
        function = "count" if drawn == "distinct" else drawn
        numbers = function in (*MOMENTS, "sum", "avg", "median", "percentile")
        parameter: float | int | None = None
        if function == "percentile":
            parameter = draw(st.sampled_from((0, 0.25, 0.5, 0.9, 1)))
        elif function == "lag":
            parameter = draw(st.integers(1, 4))
        columns: tuple[str | None, ...] = _numbers(function) if numbers else COLUMNS
        columns = (*columns, None) if drawn == "count" else columns
        chosen.append(
            Aggregate(
                function,
                draw(st.sampled_from(columns)),
                f"a{number}",
                by=draw(st.sampled_from(COLUMNS)) if function.endswith("_by") else None,
                distinct=drawn == "distinct",
                ignore_nulls=function in ("first", "last") and draw(st.booleans()),
                where=draw(st.sampled_from((None, None, "flag"))) if function != "lag" else None,
                rows=draw(st.none() | st.integers(1, size)) if kind == "rows" else None,
                parameter=parameter,
            )
        )
    return tuple(chosen)


@dataclass(frozen=True)
class Input:
    """A log with its ticks, and the streams that read it; the last event is a tick."""

    specs: dict[Identity, Spec]
    events: tuple[Event, ...]


# Specs


def ms(smallest: int, largest: int) -> st.SearchStrategy[int]:
    """Microseconds: whole milliseconds."""
    return st.integers(smallest, largest).map(lambda n: n * MS)


@st.composite
def specs(
    draw: st.DrawFn,
    kind: str | None = None,
    emission: Emission | None = None,
    late: LatePolicy | None = None,
    clock: Clock | None = None,
) -> Spec:
    """A spec; missing values are drawn."""
    kind = kind or draw(st.sampled_from(("tumbling", "sliding", "session", "count", "rows", "group")))
    emits: Emission = "changes" if kind == "rows" else draw(st.sampled_from(EMISSIONS))
    emits = emission or emits
    clock = clock or draw(st.sampled_from(("event", "ingest")))
    fields: dict[str, Any] = {"kind": kind, "emission": emits, "clock": clock}
    size = draw(st.integers(1, 5))
    fields["aggregates"] = draw(aggregates(kind, emits, size))
    if kind in ("count", "rows", "group"):
        fields["ttl_us"] = draw(st.none() | ms(1, 60))
        if kind == "group":
            return Spec(**fields)
        fields["size"] = size
        if kind == "count":
            fields["step"] = draw(st.none() | st.integers(1, fields["size"]))
        return Spec(**fields)

    fields["late"] = late or draw(st.sampled_from(("process", "warn", "drop")))
    fields["grace_us"] = draw(ms(0, 12))
    shortest_memory = 1 * MS
    if clock == "event":
        fields["idle_us"] = shortest_memory = draw(ms(1, 20))
    fields["keep_us"] = shortest_memory + draw(ms(0, 60))
    if kind == "session":
        fields["gap_us"] = draw(ms(1, 10))
        return Spec(**fields)
    fields["emit_empty"] = emits == "final" and draw(st.sampled_from((False, False, True)))
    # not only whole milliseconds
    fields["duration_us"] = draw(ms(5, 20) | st.sampled_from((5_001, 12_345)))
    if kind == "sliding":
        shortest = fields["duration_us"] // (2 if fields["emit_empty"] else 6)
        fields["slide_us"] = draw(st.integers(shortest, fields["duration_us"]))
    return Spec(**fields)


# Records and ticks, as steps relative to a running clock, so that any part of a list of them makes sense


@dataclass(frozen=True)
class TickStep:
    """Time advances and safe time follows, some way behind."""

    forward_ms: int
    behind_ms: int


@dataclass(frozen=True)
class RecordStep:
    """Time advances and a message is written, for one stream or two."""

    forward_ms: int
    created_ms: int  # how long before now; the clocks of writers differ
    event_ms: int | None  # when it happened, from now
    event_far: int | None  # or when it happened, from the epoch
    fine_us: int
    streams: tuple[int, ...]
    key: str
    source: int
    new_transaction: bool
    id_step: int
    values: Mapping[str, Value]


FORWARD = st.sampled_from((0, 0, 0, 0, 1, 1, 2, 3, 5, 8, 13, 25, 80))

SCORES = st.integers(-8_000, 8_000).map(lambda n: n / 8) | st.sampled_from(
    (float("nan"), float("inf"), -float("inf"), -0.0)
)
MANY_DIGITS = st.sampled_from((10**38 - 1, 1 - 10**38, 5 * 10**37, -5 * 10**37, 10**33))


def with_point(number: int) -> Decimal:
    """Four digits behind the point."""
    with localcontext(prec=40):
        return Decimal(number).scaleb(-4)


VALUES = st.fixed_dictionaries(
    {
        "amount": st.none() | st.integers(-9, 9) | st.sampled_from((2**63 - 1, -(2**63))),
        "units": st.none() | st.integers(-1_000, 1_000),
        "score": st.none() | SCORES,
        "price": st.none() | st.integers(-99_999, 99_999).map(lambda n: Decimal(n).scaleb(-2)),
        "huge": st.none() | (st.integers(-999, 999) | MANY_DIGITS).map(with_point),
        "small": st.none() | st.integers(-(2**15), 2**15 - 1),
        "label": st.none() | st.sampled_from(("", "a", "b", "Zürich", "a!")),
        "day": st.none() | st.dates(date(2026, 1, 1), date(2026, 1, 5)),
        "flag": st.none() | st.booleans(),
    }
)

TICKS = st.builds(TickStep, forward_ms=FORWARD, behind_ms=st.sampled_from((0, 0, 1, 4, 30)))
RECORDS = st.builds(
    RecordStep,
    forward_ms=FORWARD,
    created_ms=st.sampled_from((0, 0, 0, 1, 2, 7)),
    event_ms=st.sampled_from((*range(-6, 3), *range(-40, 11), None, None, None)),
    event_far=st.sampled_from((None,) * 80 + (0, -1, -FAR, FAR, FAR - 3 * MS)),
    fine_us=st.sampled_from((0, 0, 1, 500, 999)),
    streams=st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True).map(tuple),
    key=st.sampled_from(("a",) * 8 + KEYS),
    source=st.integers(1, 3),
    new_transaction=st.booleans(),
    id_step=st.integers(1, 3),
    values=VALUES,
)
STEPS = st.one_of(RECORDS, RECORDS, RECORDS, RECORDS, TICKS)
# five short lists: hypothesis seldom draws a long one
LOG_STEPS = st.tuples(*[st.lists(STEPS, max_size=12)] * 5).map(lambda parts: [*chain(*parts)])


def play(
    chosen: Mapping[Identity, Spec],
    steps: list[TickStep | RecordStep],
    begin_us: int,
    *,
    pace: int = 1,
    quiet_ms: int = 0,
    true_ticks: bool = True,
) -> tuple[Event, ...]:
    """The events of these steps; safe time never goes back, and true ticks are kept by all later records."""
    events: list[Event] = []
    identities = list(chosen)
    now = begin_us
    safe = begin_us - 100 * MS
    txid, number = 100, 1
    for step in steps:
        now += step.forward_ms // pace * MS
        if isinstance(step, TickStep):
            safe = max(safe, now - step.behind_ms * MS)
            events.append(Tick(safe))
            continue
        txid, number = (txid + 1, step.id_step) if step.new_transaction else (txid, number + step.id_step)
        created = now - step.created_ms * MS + step.fine_us
        if true_ticks:
            created = max(created, safe)
        for identity in {identities[index % len(identities)]: None for index in step.streams}:
            event = None if step.event_ms is None else now + step.event_ms * MS + step.fine_us
            if event is not None and step.event_far is not None:
                event = step.event_far - step.event_far % MS + step.fine_us
            events.append(
                Record(
                    *(identity[0], step.key, txid, number, created, event, step.values, step.source),
                    version=identity[1],
                )
            )
    events.append(Tick(max(safe, now) + quiet_ms * MS))
    return tuple(events)


@st.composite
def inputs(
    draw: st.DrawFn,
    subject: st.SearchStrategy[Spec] | None = None,
    others: st.SearchStrategy[Spec] | None = None,
    *,
    true_ticks: bool = True,
) -> Input:
    """A log for a stream with the subject's spec and up to two others."""
    first, other = (specs() if strategy is None else strategy for strategy in (subject, others))
    drawn = [draw(first), *draw(st.lists(other, max_size=2))]
    chosen = dict(zip(draw(st.permutations(IDENTITIES)), drawn, strict=False))
    steps = draw(LOG_STEPS)
    begin = draw(st.sampled_from((0, 1_700_000_000_000_000, -30 * MS, -FAR, FAR)))
    pace, quiet = draw(st.sampled_from((1, 3, 10))), draw(st.sampled_from((0, 5, 100)))
    events = play(chosen, steps, begin, pace=pace, quiet_ms=quiet, true_ticks=true_ticks)
    return Input(chosen, events)
