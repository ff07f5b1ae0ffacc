"""The verdict detects lost, duplicate, reordered and wrong data; plans are reproducible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.ledger import Ledger, lines
from tests.chaos.load import JOBS
from tests.chaos.plan import KINDS, plan
from tests.chaos.verdict import (
    Verdict,
    delivered,
    expected_rows,
    found_rows,
    judge_chain,
    judge_group,
    pushed,
)
from tests.windows.oracle import Record

ORDER = {"p": ["1", "2", "3"]}


def ledger(folder: Path, name: str = "x") -> Ledger:
    return Ledger(folder / f"consumer-{name}-g-q-_messages.ledger")


def got(own: Ledger, at: float, *names: str, lease: str = "l", extra: int = 0) -> None:
    own.write("got", at, at + 0.5, [["p", name, extra] for name in names], lease)


def good(own: Ledger) -> None:
    got(own, 1, "1", "2")
    own.write("acked", 2.0, ["1", "2"], "l")
    got(own, 3, "3")
    own.write("acked", 4.0, ["3"], "l")


def judged(folder: Path) -> list[str]:
    verdict = Verdict()
    judge_group(verdict, folder, "g", "q", "messages", ORDER)
    return verdict.wrong


def test_a_good_ledger_is_good(tmp_path: Path) -> None:
    good(ledger(tmp_path))
    assert judged(tmp_path) == []


def lost(own: Ledger) -> None:
    got(own, 1, "1", "2")
    own.write("acked", 2.0, ["1", "2"], "l")


def reordered(own: Ledger) -> None:
    got(own, 1, "2", "1", "3")
    own.write("acked", 2.0, ["1", "2", "3"], "l")


def again(own: Ledger) -> None:
    good(own)
    got(own, 5, "1")


def twice(own: Ledger) -> None:
    got(own, 0, "1")
    good(own)
    own.write("acked", 6.0, ["1"], "another")


def unacked(own: Ledger) -> None:
    good(own)
    got(own, 3, "4")


def changed(own: Ledger) -> None:
    got(own, 0, "1", extra=7)
    good(own)


def failed(own: Ledger) -> None:
    good(own)
    own.write("failed", "it was refused")


@pytest.mark.parametrize("fault", [lost, reordered, again, twice, unacked, changed, failed])
def test_a_bad_ledger_is_seen(tmp_path: Path, fault: Callable[[Ledger], None]) -> None:
    fault(ledger(tmp_path))
    assert judged(tmp_path)


def test_consumers_of_a_group_are_judged_together(tmp_path: Path) -> None:
    good(ledger(tmp_path))
    got(ledger(tmp_path, "y"), 1.5, "2")
    assert judged(tmp_path) == [], "it was in flight when the ack was accepted"
    assert delivered(tmp_path, "g", "q", "messages").times == 4


def test_half_a_line_is_no_line(tmp_path: Path) -> None:
    """A client killed while writing continues after the last complete line."""
    path = tmp_path / "file"
    Ledger(path).write("acked", 1)
    with path.open("ab") as file:
        file.write(b'["send", 2, [')
    own = Ledger(path)
    assert own.last == ["acked", 1]
    own.write("send", 3)
    assert list(lines(path)) == [["acked", 1], ["send", 3]]


def test_only_acknowledged_messages_count_as_pushed(tmp_path: Path) -> None:
    own = Ledger(tmp_path / "producer-one.ledger")
    own.write("send", 1, 0, [["left", "p", "a", 1], ["left", "p", "b", 2]])
    own.write("acked", 1, 2, [10, 11])
    own.write("send", 2, 2, [["left", "p", "c", 3]])
    log, payloads = pushed(tmp_path)
    assert log["left"] == {"p": [("a", 10), ("b", 11)]}
    assert payloads == {"a": 1, "b": 2}


def records(count: int) -> list[Record]:
    return [Record(1, f"u{n % 2}", n, n, n * 10**6, n * 10**6, {"n": n}) for n in range(count)]


@pytest.mark.parametrize("job", [job for job in JOBS if job != "chained"])
def test_a_row_that_is_missing_is_seen(job: str) -> None:
    wanted = expected_rows(job, records(60))
    assert wanted
    verdict = Verdict()
    less = wanted.copy()
    less[next(iter(less))] -= 1
    verdict.same(job, +less, wanted)
    assert verdict.wrong


def test_rows_are_compared_by_key_and_values() -> None:
    rows: list[tuple[str, Any, dict[str, str]]] = [("u", {"c": 2, "s": 5}, {})] * 2
    assert found_rows("groups", rows) == {("u", 2, 5): 2}


def test_a_chain_must_have_all_rows_of_its_source() -> None:
    source = [("u", {"c": n}, {"_event_time": f"2026-01-31T12:00:{n:02}Z"}) for n in (1, 5, 30)]
    row = {"b": "2026-01-31T12:00:00Z", "c": 6}
    rows = [
        ("", row, {"_revision": "1"}),
        ("", row | {"b": "2026-01-31T12:00:20Z", "c": 30}, {"_revision": "1"}),
    ]
    verdict = Verdict()
    judge_chain(verdict, rows, source)
    assert verdict.wrong == []
    judge_chain(verdict, rows[:1], source)
    assert verdict.wrong


def test_a_seed_repeats_a_plan_and_a_round_has_every_kind() -> None:
    assert plan(7, 600) == plan(7, 600)
    assert plan(7, 600) != plan(8, 600)
    assert {fault.kind for fault in plan(7, 300)} == set(KINDS)
