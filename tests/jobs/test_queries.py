"""The results of each kind of query, from a push to the rows in its queue."""

import pytest

from tests.jobs.system import Jobs

SCHEMA = "create stream {s} (user string, amount bigint, at timestamp) with (queue = '{orders}');"


def order(user: str | None, amount: object, second: int = 0) -> dict[str, object]:
    return {"user": user, "amount": amount, "at": f"2026-01-31T12:{second // 60:02}:{second % 60:02}Z"}


def test_a_filter_and_its_columns(jobs: Jobs) -> None:
    jobs.run(SCHEMA + "create stream {large} as select user, amount * 2 as twice from {s} where amount > 10")
    jobs.push("orders", [order("ann", 5), order("bob", 11), order(None, 12)], partition="p1")
    jobs.push("orders", [order("cid", 100)], partition="p2")
    jobs.drain()
    rows = jobs.rows("large")
    assert [row.data for row in rows if row.partition == "p1"] == [
        {"user": "bob", "twice": 22}, {"user": None, "twice": 24},
    ]  # fmt: skip
    assert [row.data for row in rows if row.partition == "p2"] == [{"user": "cid", "twice": 200}]
    assert len({row.id for row in rows}) == 3
    assert {row.headers["_version"] for row in rows} == {"1"}
    assert all(row.headers["_event_time"].endswith("Z") for row in rows)
    assert jobs.job("large")["state"] == "running"


def test_rows_can_have_another_partition(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {by} as select user, amount from {s} with (partition_by = 'user, amount')"
    )
    jobs.push("orders", [order("ann", 5), order(None, 6)])
    jobs.drain()
    assert sorted(row.partition for row in jobs.rows("by")) == ['["ann",5]', "[null,6]"]


def test_select_star_copies_the_payload(jobs: Jobs) -> None:
    jobs.push("plain", [{"a": {"b": [1, 2.50]}, "c": "x"}])
    jobs.run("create stream {copy} as select * from {plain} where c = 'x'")
    jobs.drain()
    assert jobs.data("copy") == [{"a": {"b": [1, 2.5]}, "c": "x"}]


def test_a_row_for_each_element(jobs: Jobs) -> None:
    jobs.run(
        "create stream {s} (id bigint, tags array<string>) with (queue = '{q}');"
        "create stream {tags} as select id, explode(tags) as tag from {s}"
    )
    jobs.push(
        "q", [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}, {"id": 3}, {"id": 4, "tags": ["a"]}]
    )
    jobs.drain()
    assert [tuple(row.data.values()) for row in jobs.rows("tags")] == [(1, "a"), (1, "b"), (4, "a")]
    assert len({row.id for row in jobs.rows("tags")}) == 3


def test_more_than_ten_elements_keep_their_order(jobs: Jobs) -> None:
    jobs.run(
        "create stream {s} (id bigint, tags array<bigint>) with (queue = '{q}');"
        "create stream {tags} as select id, explode(tags) as tag from {s}"
    )
    jobs.push("q", [{"id": number, "tags": [*range(120)]} for number in range(3)])
    jobs.drain()
    assert [tuple(row.data.values()) for row in jobs.rows("tags")] == [
        (number, tag) for number in range(3) for tag in range(120)
    ]


def test_totals_of_a_minute(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {totals} as select user, sum(amount) as total, count(*) as n, window_start"
        " from {s} group by user window tumbling(at, 1m) having n > 1"
    )
    jobs.push("orders", [order("ann", 1, 1), order("ann", 2, 2), order("bob", 3, 3), order("ann", 7, 61)])
    jobs.drain()
    assert jobs.data("totals") == [
        {"user": "ann", "total": 3, "n": 2, "window_start": "2026-01-31T12:00:00.000000Z"}
    ]
    (row,) = jobs.rows("totals")
    assert row.partition == "ann"
    assert row.headers == {
        "_version": "1", "_event_time": "2026-01-31T12:00:59.999999Z", "_revision": "1",
    }  # fmt: skip


def test_a_late_record_gives_the_next_revision(jobs: Jobs) -> None:
    jobs.run(SCHEMA + "create stream {t} as select sum(amount) as total from {s} window tumbling(at, 1m)")
    jobs.push("orders", [order("a", 1, 1), order("a", 10, 61), order("a", 2, 2), order("a", 20, 121)])
    jobs.drain()
    assert [(row.data["total"], row.headers["_revision"]) for row in jobs.rows("t")] == [
        (1, "1"), (3, "2"), (10, "1"),
    ]  # fmt: skip
    assert jobs.job("t")["late"] == 1


def test_late_records_can_be_dropped(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select sum(amount) as total from {s} window tumbling(at, 1m)"
        " with (late = 'drop')"
    )
    jobs.push("orders", [order("a", 1, 1), order("a", 10, 61), order("a", 2, 2), order("a", 20, 121)])
    jobs.drain()
    assert [row.data["total"] for row in jobs.rows("t")] == [1, 10]
    assert "_revision" not in jobs.rows("t")[0].headers
    assert jobs.job("t")["dropped"] == 1
    (late,) = jobs.api.read(f"/api/v1/jobs/{jobs.name('t')}/late")["late"]
    assert (late["dropped"], late["time"]) == (True, "2026-01-31T12:00:02.000Z")


FIRSTS = "create stream {firsts} as select total, _revision as r from {t} where _revision = 1"


@pytest.mark.parametrize("window", ["tumbling(at, 1m) with (late = 'drop')", "count(1)"])
def test_rows_that_are_never_revised_are_first_revisions(jobs: Jobs, window: str) -> None:
    jobs.run(
        SCHEMA + f"create stream {{t}} as select sum(amount) as total from {{s}} window {window};{FIRSTS};"
        "create stream {again} as select total from {firsts} where _revision = 1"
    )
    jobs.push("orders", [order("a", 1, 1), order("a", 10, 61), order("a", 20, 121)])
    jobs.drain()
    rows = jobs.data("t")
    assert len(rows) >= 2
    assert jobs.data("firsts") == [row | {"r": 1} for row in rows]
    assert jobs.data("again") == rows


def test_a_reader_of_first_revisions_continues_when_late_records_are_dropped(jobs: Jobs) -> None:
    windows = "stream {t} as select sum(amount) as total from {s} window tumbling(at, 1m)"
    jobs.run(f"{SCHEMA}create {windows};{FIRSTS}")
    jobs.push("orders", [order("a", 1, 1), order("a", 10, 61), order("a", 2, 2)])
    jobs.drain()
    (result,) = jobs.run(f"create or replace {windows} with (late = 'drop')")
    assert result["how"] == "in place"
    jobs.push("orders", [order("a", 20, 121), order("a", 30, 181)])
    jobs.drain()
    assert [row["total"] for row in jobs.data("t")] == [1, 3, 10, 20]
    assert [row["total"] for row in jobs.data("firsts")] == [1, 10, 20]


def test_a_reader_passes_on_the_revisions_of_a_job_that_became_updating(jobs: Jobs) -> None:
    windows = "stream {t} as select sum(amount) as total from {s} window tumbling(at, 1m)"
    jobs.run(
        f"{SCHEMA}create {windows} with (late = 'drop');"
        "create stream {f} as select total from {t} where total > 0;"
        "create stream {firsts} as select count(*) as c from {f} where _revision = 1"
    )
    jobs.push("orders", [order("a", 1, 1), order("a", 10, 61), order("a", 2, 2)])
    jobs.drain()
    jobs.run(f"create or replace {windows}")
    jobs.push("orders", [order("a", 20, 121), order("a", 4, 64)])
    jobs.drain()
    assert [(row.data["total"], row.headers["_revision"]) for row in jobs.rows("f")] == [
        (1, "1"), (10, "1"), (14, "2"),
    ]  # fmt: skip
    assert jobs.data("firsts") == [{"c": 1}, {"c": 2}]


def test_changes_of_a_window(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, sum(amount) as total, avg(amount) as mean from {s}"
        " group by user window tumbling(at, 1m) emit changes"
    )
    jobs.push("orders", [order("ann", 1, 1), order("bob", 5, 1)])
    jobs.drain()
    jobs.push("orders", [order("ann", 2, 2), order("ann", 4, 60)])
    jobs.drain()
    found = [(row.partition, row.data["total"], row.data["mean"]) for row in jobs.rows("t")]
    assert sorted(found) == [("ann", 1, 1.0), ("ann", 3, 1.5), ("ann", 4, 4.0), ("bob", 5, 5.0)]
    ann = [row for row in jobs.rows("t") if row.partition == "ann"]
    assert [row.data["total"] for row in ann] == [1, 3, 4]
    assert ann[1].headers["_event_time"] == "2026-01-31T12:00:02.000000Z"
    assert len({row.id for row in ann}) == 3


def test_sliding_windows(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA
        + "create stream {t} as select max(amount) as top, window_end from {s} window sliding(at, 2m, 1m)"
    )
    jobs.push("orders", [order("a", 3, 30), order("a", 5, 90), order("a", 1, 400)])
    jobs.drain()
    assert [(row.data["top"], row.data["window_end"][14:16]) for row in jobs.rows("t")] == [
        (3, "01"), (5, "02"), (5, "03"),
    ]  # fmt: skip


def test_sessions(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, count(*) as n, first(amount) as f, last(amount) as l"
        " from {s} group by user window session(at, 10s)"
    )
    jobs.push("orders", [order("a", 1, 0), order("a", 2, 9), order("a", 3, 18), order("a", 4, 40)])
    jobs.push("orders", [order("a", 5, 80)])
    jobs.drain()
    assert [tuple(row.data.values()) for row in jobs.rows("t")] == [("a", 3, 1, 3), ("a", 1, 4, 4)]


def test_sessions_cannot_be_counted_by_their_first_revisions(jobs: Jobs) -> None:
    jobs.run(SCHEMA + "create stream {t} as select count(*) as n from {s} window session(at, 10s)")
    reason = jobs.refused(
        "create stream {u} as select sum(n) as n from {t} where _revision = 1 window count(2)"
    )
    assert reason.endswith("create it with late = 'drop'")
    assert "not of sessions" in jobs.refused("create stream {u} as select n, _revision as r from {t}")
    reason = jobs.refused("create stream {u} as select sum(n) as n from {t} window count(2)")
    assert reason.endswith("create it with late = 'drop'")


def test_count_windows(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, sum(amount) as s from {s} group by user window count(2)"
    )
    jobs.push("orders", [order("a", 1), order("b", 5), order("a", 2), order("a", 4)])
    jobs.drain()
    jobs.push("orders", [order("a", 8)])
    jobs.drain()
    assert [tuple(row.data.values()) for row in jobs.rows("t")] == [("a", 3), ("a", 12)]


def test_groups_without_a_window(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, count(*) as n, sum(amount) as s from {s} group by user"
    )
    jobs.push("orders", [order("a", 1), order("b", 5), order("a", 2)])
    jobs.drain()
    jobs.push("orders", [order("a", 4), order(None, 6)])
    jobs.drain()
    found: dict[str, list[tuple[int, int]]] = {}
    for row in jobs.rows("t"):
        found.setdefault(row.partition, []).append((row.data["n"], row.data["s"]))
    assert found == {"a": [(1, 1), (2, 3), (3, 7)], "b": [(1, 5)], "[null]": [(1, 6)]}


def test_the_last_records_of_a_key(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, amount, lag(amount) over"
        " (rows window buffer 3 rows partition by user) as before,"
        " avg(amount) over (rows window buffer 2 rows partition by user) as mean from {s}"
    )
    jobs.push("orders", [order("a", 1), order("b", 5), order("a", 2)])
    jobs.drain()
    jobs.push("orders", [order("a", 6)])
    jobs.drain()
    assert sorted(tuple(row.data.values()) for row in jobs.rows("t")) == [
        ("a", 1, None, 1.0), ("a", 2, 1, 1.5), ("a", 6, 2, 4.0), ("b", 5, None, 5.0),
    ]  # fmt: skip


def test_windows_of_the_last_records_of_a_key(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, sum(amount) as s, _count as n from {s} group by user"
        " window rows(2) having s > 1"
    )
    jobs.push("orders", [order("a", 1), order("b", 5), order("a", 2)])
    jobs.drain()
    jobs.push("orders", [order("a", 6)])
    jobs.drain()
    assert sorted(tuple(row.data.values()) for row in jobs.rows("t")) == [
        ("a", 3, 2), ("a", 8, 2), ("b", 5, 1),
    ]  # fmt: skip
    assert all("_revision" not in row.headers for row in jobs.rows("t"))


def test_jobs_over_jobs(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {minutes} as select user, sum(amount) as total from {s} group by user"
        " window tumbling(at, 1m) with (late = 'drop');"
        "create stream {hours} as select sum(total) as total, count(*) as n from {minutes}"
        " window tumbling(2m)"
    )
    seconds = [1, 2, 61, 62, 121, 185, 245, 400]
    jobs.push("orders", [order("a", 1, second) for second in seconds])
    for _ in range(4):
        jobs.drain()
    assert [row.data["total"] for row in jobs.rows("minutes")] == [2, 2, 1, 1, 1]
    # The rows of minutes have the time of their windows, by which the next job counts.
    assert jobs.data("hours")[:1] == [{"total": 4, "n": 2}]


def test_unreadable_records_are_dead(jobs: Jobs) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, 10 / amount as share from {s} where amount >= 0;"
        "create stream {quiet} as select user, 10 / amount as share from {s} with (on_error = 'skip')"
    )
    jobs.push("orders", [order("a", 5), order("b", "many"), order("c", 0), order("d", -1)])
    jobs.drain()
    assert jobs.data("t") == [{"user": "a", "share": 2.0}]
    reasons = [each["reason"] for each in jobs.dead("t")]
    assert sorted(reasons) == ['amount is "many", not a BIGINT; it would fit STRING', "division by zero"]
    assert (jobs.job("t")["dead"], jobs.job("quiet")["dead"]) == (2, 2)
    assert jobs.dead("quiet") == []
    assert len(jobs.data("quiet")) == 2


def test_a_payload_that_is_no_object_is_dead_where_columns_are_read(jobs: Jobs) -> None:
    jobs.run(
        "create stream {s} (n bigint, at timestamp) with (queue = '{q}');"
        "create stream {columns} as select n from {s};"
        "create stream {filter} as select 1 as one from {s} where n is null;"
        "create stream {sums} as select sum(n) as s from {s};"
        "create stream {count} as select count(*) as c from {s}"
    )
    jobs.push("q", [{"n": 1}, 7, [1], "text", {}])
    jobs.run("create stream {whole} as select * from {q}")
    jobs.drain()
    assert jobs.data("columns") == [{"n": 1}, {"n": None}]
    assert jobs.data("filter") == [{"one": 1}]
    assert jobs.data("sums") == [{"s": 1}, {"s": 1}]
    assert jobs.data("count") == [{"c": number} for number in range(1, 6)]
    assert jobs.data("whole") == [{"n": 1}, 7, [1], "text", {}]
    for name in ("columns", "filter", "sums"):
        assert {each["reason"] for each in jobs.dead(name)} == {
            f"n cannot be read: the payload is {shown}, not a JSON object" for shown in ("7", "[1]", '"text"')
        }
        assert jobs.job(name)["dead"] == 3


def test_a_time_that_lies_ahead_is_dead(jobs: Jobs) -> None:
    jobs.run(SCHEMA + "create stream {t} as select count(*) as n from {s} window tumbling(at, 1m)")
    jobs.push("orders", [{**order("a", 1), "at": "9999-01-01T00:00:00Z"}, {**order("a", 1), "at": None}])
    jobs.push("orders", [order("a", 1, 1), order("a", 1, 61)])
    jobs.drain()
    assert jobs.data("t") == [{"n": 1}]
    assert len(jobs.dead("t")) == 2


@pytest.mark.parametrize("amount", [2**63 - 1, -(2**63)])
def test_an_overflow_is_a_dead_row(jobs: Jobs, amount: int) -> None:
    jobs.run(
        SCHEMA + "create stream {t} as select user, sum(amount) as s from {s} group by user window count(2)"
    )
    jobs.push("orders", [order("a", amount), order("a", amount), order("b", 1), order("b", 2)])
    jobs.drain()
    assert jobs.data("t") == [{"user": "b", "s": 3}]
    (dead,) = jobs.dead("t")
    assert "does not fit into BIGINT" in dead["reason"]


def test_revisions_come_in_their_order(jobs: Jobs) -> None:
    jobs.run(SCHEMA + "create stream {t} as select count(*) as n from {s} window tumbling(at, 1m)")
    jobs.push("orders", [order("a", 1, 0), order("a", 1, 300), *(order("a", 1, n) for n in range(1, 12))])
    jobs.drain()
    found = [(row.data["n"], row.headers["_revision"]) for row in jobs.rows("t")]
    assert found == [(n, str(n)) for n in range(1, 13)]


def test_a_merged_session_comes_after_those_that_it_replaces(jobs: Jobs) -> None:
    jobs.run(SCHEMA + "create stream {t} as select count(*) as n from {s} window session(at, 30s)")
    jobs.push("orders", [order("a", 1, 0), order("a", 1, 40), order("a", 1, 300), order("a", 1, 20)])
    jobs.drain()
    assert [row.data["n"] for row in jobs.rows("t")] == [1, 1, 3]
    assert "_replaces" in jobs.rows("t")[-1].headers


def test_a_job_from_now_on_has_rows_that_its_own_request_inserts(jobs: Jobs) -> None:
    jobs.run("create stream {s} (n bigint) with (queue = '{q}'); insert into {s} values (1)")
    jobs.drain()
    jobs.run(
        "create stream {other} (n bigint) with (queue = '{o}');"
        "create stream {now} as select n from {s} with (start = 'latest'); insert into {s} values (2), (3)"
    )
    jobs.drain()
    assert [row["n"] for row in jobs.data("now")] == [2, 3]
