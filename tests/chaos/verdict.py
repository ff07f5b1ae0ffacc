"""Verifies the invariants after a run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.ledger import lines
from tests.chaos.load import GROUPS, JOBS, QUEUES, RELAY, RELAYED, WINDOW_GROUPS
from tests.system.load import event_us, fingerprint
from tests.system.system import Stream, System, as_rows, microseconds, oracle_rows
from tests.windows.oracle import Aggregate, Event, Record, Row, Spec, Tick, expected_output

FAR_AWAY = 4 * 10**15
SECOND = 1_000_000
Rows = Counter[tuple[Any, ...]]


@dataclass
class Verdict:
    """Counts of compared items, and all differences."""

    figures: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def same(self, what: str, found: Counter[Any], wanted: Counter[Any]) -> None:
        """Check that two multisets are equal."""
        missing, extra = wanted - found, found - wanted
        if missing:
            self.wrong.append(f"{what}: {missing.total()} missing, such as {_some(missing)}")
        if extra:
            self.wrong.append(f"{what}: {extra.total()} too many, such as {_some(extra)}")

    def true(self, what: str, examples: Sequence[Any]) -> None:
        """Check that there are no counterexamples."""
        if examples:
            self.wrong.append(f"{what}: {len(examples)}, such as {examples[:3]}")


def _some(bag: Counter[Any]) -> list[Any]:
    return list(bag)[:3]


# The log


Log = dict[str, dict[str, list[tuple[str, int]]]]
"""TransactionId and message id of all messages, by queue and partition, in order."""


def pushed(folder: Path) -> tuple[Log, dict[str, Any]]:
    """Return the acknowledged messages of the producers, and the payloads by transactionId."""
    log: Log = {queue: defaultdict(list) for queue in QUEUES}
    payloads = {}
    for file in sorted(folder.glob("producer-*.ledger")):
        sent: list[list[Any]] = []
        for kind, _, _, items in lines(file):
            if kind == "send":
                sent = items
                continue
            for (queue, partition, name, payload), message_id in zip(sent, items, strict=True):
                log[queue][partition].append((name, message_id))
                payloads[name] = payload
    return log, payloads


def stored(system: System, queue: str) -> list[tuple[int, int, str, str, int, Any]]:
    """Return the messages of a queue in log order."""
    return system.run(
        "SELECT m.txid, m.id, p.name, m.transaction_id, (extract(epoch FROM m.created_at) * 1000000)::bigint,"
        " m.payload::jsonb FROM queenspark.messages m JOIN queenspark.partitions p ON p.id = m.partition_id"
        " JOIN queenspark.queues q ON q.id = m.queue_id WHERE q.name = %s ORDER BY m.txid, m.id",
        queue,
    )


def judge_log(system: System, verdict: Verdict, log: Log, payloads: dict[str, Any]) -> None:
    """Check that each acknowledged message is stored once, in order, under the id in the response."""
    for queue in QUEUES:
        found: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for _, id_, partition, name, _, payload in stored(system, queue):
            found[partition].append((name, id_))
            if payloads.get(name) != payload:
                verdict.wrong.append(f"the payload of {name} is {payload}")
        bag = Counter((partition, *each) for partition, some in found.items() for each in some)
        wanted = Counter((partition, *each) for partition, some in log[queue].items() for each in some)
        verdict.same(f"messages of {queue}", bag, wanted)
        wrong = [name for name, some in log[queue].items() if found[name] != some]
        verdict.true(f"partitions of {queue} out of order", wrong)
    verdict.figures["messages"] = len(payloads)


# Groups


@dataclass
class Delivered:
    """The deliveries and acks of a group, over all its consumers."""

    first: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    extras: dict[str, Any] = field(default_factory=dict)
    times: int = 0
    acked: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    tried: set[str] = field(default_factory=set)
    came_again: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def delivered(folder: Path, group: str, source: str, kind: str) -> Delivered:
    """Read the ledgers of a group."""
    found = Delivered()
    events: list[tuple[float, list[Any]]] = []
    acked_at: dict[str, float] = {}
    for file in folder.glob(f"consumer-*-{group}-{source}-_{kind}.ledger"):
        for line in lines(file):
            if line[0] == "got":
                events.append((line[2], line))
            elif line[0] == "acked":
                for identity in line[2]:
                    found.acked[identity].add(line[3])
                    acked_at[identity] = min(line[1], acked_at.get(identity, line[1]))
            elif line[0] == "acking":
                found.tried.update(line[1])
            else:
                found.failed.append(f"{file.name}: {line}")
    for _, (_, sent, _, items, _) in sorted(events, key=lambda event: event[0]):
        for partition, identity, extra in items:
            found.times += 1
            if identity not in found.extras:
                found.extras[identity] = extra
                found.first[partition].append(identity)
            elif found.extras[identity] != extra:
                found.changed.append(identity)
            if sent > acked_at.get(identity, sent):
                found.came_again.append(identity)
    return found


def is_complete(folder: Path, group: str, source: str, kind: str, count: int) -> bool:
    """Return whether a group has received at least `count` items, or has failed."""
    found = delivered(folder, group, source, kind)
    return len(found.extras) >= count or bool(found.failed)


def unacked(system: System) -> list[tuple[str, str, int]]:
    """Return the groups with unacknowledged deliveries: group, queue, number of partitions."""
    return system.run(
        "SELECT g.name, q.name, count(*) FROM queenspark.places p"
        " JOIN queenspark.groups g ON g.id = p.group_id"
        " JOIN queenspark.queues q ON q.id = g.queue_id WHERE p.pending <> '{}' GROUP BY g.name, q.name"
    )


def judge_group(
    verdict: Verdict, folder: Path, group: str, source: str, kind: str, wanted: dict[str, list[str]]
) -> Delivered:
    """Check that everything is delivered in order, acked under one lease, and not redelivered afterwards."""
    found = delivered(folder, group, source, kind)
    what = f"group {group} of {source}"
    everything = {identity for some in wanted.values() for identity in some}
    verdict.same(f"{what}, delivered", Counter(found.extras.keys()), Counter(everything))
    verdict.same(f"{what}, acknowledged", Counter(found.acked.keys() | found.tried), Counter(everything))
    verdict.true(f"{what}: acked under two leases", [k for k, v in found.acked.items() if len(v) > 1])
    verdict.true(f"{what}: redelivered after the ack", found.came_again)
    verdict.true(f"{what}: redelivered with other content", found.changed)
    verdict.true(f"{what}: failed", found.failed)
    wrong = [key for key, some in wanted.items() if found.first.get(key) != some]
    verdict.true(f"{what}: keys out of order", wrong)
    verdict.figures["deliveries"] = verdict.figures.get("deliveries", 0) + found.times
    again = found.times - len(found.extras)
    verdict.figures["redeliveries"] = verdict.figures.get("redeliveries", 0) + again
    return found


def judge_groups(system: System, verdict: Verdict, folder: Path, log: Log) -> None:
    """Check the groups of queues, and the messages that one of them moved in transactions."""
    order = {queue: {name: [m for m, _ in some] for name, some in log[queue].items()} for queue in QUEUES}
    for group, queue in GROUPS:
        judge_group(verdict, folder, group, queue, "messages", order[queue])
    group, queue = RELAY
    judge_group(verdict, folder, group, queue, "relay", order[queue])
    moved: dict[str, list[str]] = defaultdict(list)
    for _, _, partition, _, _, payload in stored(system, RELAYED):
        moved[partition].append(payload)
    wanted = Counter((key, each) for key, some in order[queue].items() for each in some)
    verdict.same(RELAYED, Counter((key, each) for key, some in moved.items() for each in some), wanted)
    verdict.true(
        f"partitions of {RELAYED} out of order", [k for k in moved if moved[k] != order[queue].get(k)]
    )
    verdict.figures["moved in transactions"] = sum(map(len, moved.values()))


# Streams


def with_ticks(records: Sequence[Record], every_us: int = 5 * SECOND) -> list[Event]:
    """Insert ticks between records, so that the oracle can seal windows and drop their state."""
    safe: list[int] = []
    least = FAR_AWAY
    for record in reversed(records):
        least = min(least, record.created_us)
        safe.append(least)
    events: list[Event] = []
    last = 0
    for record, safe_us in zip(records, reversed(safe), strict=True):
        if safe_us - last >= every_us:
            events.append(Tick(safe_us))
            last = safe_us
        events.append(record)
    return [*events, Tick(FAR_AWAY)]


def expected_windows(system: System, stream: Stream) -> list[Row]:
    """Return the windows of a stream as computed by the oracle."""
    records = system.records(stream, event_us if stream.event_time else None, fingerprint)
    return expected_output({(stream.id, 1): stream.spec}, with_ticks(records)).rows


def judge_stream(system: System, verdict: Verdict, folder: Path, stream: Stream, wanted: list[Row]) -> None:
    """Check that the windows are the oracle's, and that each group received them with their messages."""
    sealed = system.sealed(stream)
    verdict.same(f"windows of {stream.name}", Counter(as_rows(sealed)), Counter(oracle_rows(wanted)))
    order: dict[str, list[str]] = defaultdict(list)
    for window in sealed:
        order[window["key"]].append(f"{window['id']}#{window['revision']}")
    content = {
        f"{row.window_id}#{row.revision}": [row.count, int(row.aggregates["n"] or 0)] for row in wanted
    }
    for group, name in WINDOW_GROUPS:
        if name == stream.name:
            found = judge_group(verdict, folder, group, name, "windows", order)
            wrong = [each for each, extra in found.extras.items() if content.get(each) != extra]
            verdict.true(f"windows of {name} with other messages", wrong)
    verdict.figures["windows"] = verdict.figures.get("windows", 0) + len(sealed)


# Jobs

_SUM = (Aggregate("sum", "n", "s"),)
_CLOCK: dict[str, Any] = {
    "clock": "event", "grace_us": 2 * SECOND, "idle_us": 5 * SECOND, "keep_us": 600 * SECOND,
    "aggregates": _SUM,
}  # fmt: skip
SPECS = {
    "totals": Spec(kind="tumbling", duration_us=10 * SECOND, late="drop", **_CLOCK),
    "revised": Spec(kind="sliding", duration_us=10 * SECOND, slide_us=5 * SECOND, **_CLOCK),
    "visits": Spec(kind="session", gap_us=2 * SECOND, **_CLOCK),
    "changes": Spec(kind="tumbling", duration_us=10 * SECOND, emission="changes", **_CLOCK),
}


def rows_of(system: System, job: str) -> list[tuple[str, Any, dict[str, str]]]:
    """Return partition, payload and headers of a job's rows, in log order."""
    return system.run(
        "SELECT p.name, m.payload::jsonb, m.headers::jsonb FROM queenspark.messages m"
        " JOIN queenspark.queues q ON q.id = m.queue_id JOIN queenspark.partitions p ON p.id = m.partition_id"
        " WHERE q.name = %s ORDER BY m.txid, m.id",
        job,
    )


def clicks(system: System) -> list[Record]:
    """Return the records of the jobs' source."""
    return [
        Record(1, payload["user"], txid, id_, created, payload["at"] * 1000, {"n": payload["n"]})
        for txid, id_, _, _, created, payload in stored(system, "left")
    ]


def expected_rows(job: str, records: list[Record]) -> Rows:
    """Return the expected rows of a job: key and values."""
    by_user: dict[str, list[int]] = defaultdict(list)
    for record in records:
        by_user[record.key].append(record.values["n"])
    if job in ("kept", "sixths"):
        divisor = 3 if job == "kept" else 6
        return Counter((u, n) for u, some in by_user.items() for n in some if n % divisor == 0)
    if job == "counts":
        return Counter(
            (u, 5, sum(some[at : at + 5])) for u, some in by_user.items() for at in range(0, len(some) - 4, 5)
        )
    if job == "groups":
        found: Rows = Counter()
        for user, some in by_user.items():
            total = 0
            for number, n in enumerate(some, 1):
                total += n
                found[user, number, total] += 1
        return found
    if job == "buffers":
        return Counter(
            (u, n, some[at - 2] if at >= 2 else None, sum(some[max(0, at - 2) : at + 1]))
            for u, some in by_user.items()
            for at, n in enumerate(some)
        )
    spec = SPECS[job]
    rows = expected_output({(1, 1): spec}, with_ticks(records)).rows
    revised = spec.late == "process" and spec.emission == "final"
    return Counter(
        (row.key, row.start_us, row.end_us, row.count, row.aggregates["s"], row.revision if revised else None)
        for row in rows
    )


def found_rows(job: str, rows: Iterable[tuple[str, Any, dict[str, str]]]) -> Rows:
    """Return the actual rows in a job's queue, in the same form."""
    found: Rows = Counter()
    for partition, data, headers in rows:
        if job in ("kept", "sixths"):
            found[partition, data["n"]] += 1
        elif job in ("counts", "groups"):
            found[partition, data["c"], data["s"]] += 1
        elif job == "buffers":
            found[partition, data["n"], data["l"], data["s"]] += 1
        else:
            spec = SPECS[job]
            revised = spec.late == "process" and spec.emission == "final"
            revision = int(headers["_revision"]) if revised else None
            times = microseconds(data["b"]), microseconds(data["e"])
            found[partition, *times, data["c"], data["s"], revision] += 1
    return found


def judge_jobs(system: System, verdict: Verdict, expected: dict[str, Rows]) -> None:
    """Check every row of every job."""
    for job in JOBS:
        rows = rows_of(system, job)
        verdict.figures["rows"] = verdict.figures.get("rows", 0) + len(rows)
        if job == "chained":
            judge_chain(verdict, rows, rows_of(system, "totals"))
        else:
            verdict.same(f"rows of {job}", found_rows(job, rows), expected[job])


def judge_chain(verdict: Verdict, rows: list[Any], source: list[Any], size_us: int = 20 * SECOND) -> None:
    """Check that the last revision of each window has all rows of the source job.

    The number of revisions depends on the batches.
    """
    wanted: Counter[int] = Counter()
    for _, data, headers in source:
        wanted[microseconds(headers["_event_time"]) // size_us * size_us] += data["c"]
    last: dict[int, tuple[int, int]] = {}
    seen: Rows = Counter()
    for _, data, headers in rows:
        start, revision = microseconds(data["b"]), int(headers["_revision"])
        seen[start, revision] += 1
        last[start] = max(last.get(start, (0, 0)), (revision, data["c"]))
    verdict.true("duplicate rows of chained", [each for each, n in seen.items() if n > 1])
    found = Counter({start: count for start, (_, count) in last.items()})
    verdict.same("rows of chained", found, wanted)
