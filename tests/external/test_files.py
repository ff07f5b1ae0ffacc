"""Jobs over files, without Spark: formats, windows, the end, and all kinds of bad files."""

import gzip
import os
import random
import statistics
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import cast

import msgspec
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from queenspark.connectors.files import lines as file_lines
from queenspark.connectors.files.location import Found, Location
from queenspark.connectors.reader import ReadFailed
from queenspark.pipeline.errors import JobFailed
from queenspark.pipeline.external import job_source
from queenspark.pipeline.external.job_query import JobQuery
from queenspark.store.errors import Refused
from queenspark.store.pipeline import JobNews, PipelineStore
from queenspark.store.progress import Stream
from queenspark.windows import merging
from queenspark.windows.parts import MOST_VALUES
from tests.conftest import StartBroker
from tests.database import connect
from tests.external.files import Files
from tests.leader import LEAD
from tests.pipeline.streams.local import LocalJob
from tests.system.load import wait_until

MINUTES = (
    "select k, count(*) as c, sum(n) as s, window_start as at from {s} group by k window tumbling(at, 1m)"
)
BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
COLUMNS = "k string, n bigint, at timestamp"
Totals = dict[tuple[object, object], tuple[object, object]]


def clicks(count: int, first: int = 0) -> list[dict[str, object]]:
    """A click a second, of three keys."""
    return [
        {"k": f"k{n % 3}", "n": n, "at": (BEGIN + timedelta(seconds=n)).isoformat()}
        for n in range(first, first + count)
    ]


def minutes(found: list[dict[str, object]]) -> Totals:
    """The rows of `MINUTES`, to compare."""
    return {(row["k"], row["at"]): (row["c"], row["s"]) for row in found}


def expected(count: int, without: frozenset[int] = frozenset()) -> Totals:
    """The totals of this many clicks."""
    totals: dict[tuple[object, object], list[int]] = {}
    for n in range(count):
        if n not in without:
            at = (BEGIN + timedelta(minutes=n // 60)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            totals.setdefault((f"k{n % 3}", at), []).append(n)
    return {key: (len(values), sum(values)) for key, values in totals.items()}


def frame(count: int, first: int = 0) -> pl.DataFrame:
    """Clicks as a table."""
    times = pl.col("at").str.to_datetime(time_unit="us", time_zone="UTC")
    return pl.DataFrame(clicks(count, first)).with_columns(times)


def create(files: Files, columns: str = COLUMNS, query: str = MINUTES, **options: str) -> None:
    """The source and the job of a test."""
    files.run(files.source(columns, **options) + f"create stream {{t}} as {query}")


@pytest.mark.parametrize("late", ["process", "drop"])
def test_late_records_are_judged_one_by_one(files: Files, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks merge records; late ones make a revision each, or are dropped one by one, all the same."""
    found = clicks(200)
    late_ones = [*found[:120], *found[9:15], *found[120:], *found[30:36]]
    query = MINUTES.replace("count(*) as c", "count(*) as c, _revision as r") + f" with (late = '{late}')"
    rows, counts = [], []
    for fewest in (2, 10**6):
        monkeypatch.setattr(merging, "FEWEST", fewest)
        files.begin()
        for number in range(0, len(late_ones), 53):
            files.write(f"{number:03}.json", *late_ones[number : number + 53])
        create(files, query=query)
        files.run_job("t", max_rows=60)
        rows.append(sorted(map(str, files.data("t"))))
        job = files.job("t")
        counts.append((job["run"]["records"], job["late"], job["dropped"]))
    assert rows[0] == rows[1]
    assert counts == [(212, 12, 12 if late == "drop" else 0)] * 2


def test_the_lag_is_the_age_of_the_oldest_unread_file(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_source, "_TELL_SECONDS", 0.0)
    for name in ("a", "b"):
        path = files.write(f"{name}.json", *clicks(100))
        os.utime(path, (1_769_860_800, 1_769_860_800))
    create(files, mode="stream")
    with closing(files.query("t", max_bytes=2_000)) as query:
        assert query.batch()
        job = files.job("t")
        assert job["run"]["unreadSince"] == "2026-01-31T12:00:00+00:00"
        assert job["lagSeconds"] > 86_400
        query.drain()
    job = files.job("t")
    assert (job["lagSeconds"], job["run"].get("unreadSince")) == (0, None)


def test_checkpoints_of_dropped_and_replaced_jobs_can_go(files: Files) -> None:
    files.write("a.json", *clicks(10))
    create(files)
    files.run("create stream {u} as select n from {s}; create stream {v} as select n from {s}")
    jobs = files.wanted()
    t, u, v = (jobs[files.name(name)].stream_id for name in ("t", "u", "v"))
    files.run("drop stream {u}; create or replace stream {v} as select k from {s}")
    with PipelineStore(files.database_url) as store:
        ended = store.ended_jobs([(t, 1), (u, 1), (v, 1), (v, 2), (1_000_000, 1)])
    assert sorted(ended) == sorted([(u, 1), (v, 1)])


def test_an_explanation_is_that_of_the_job_s_own_query(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_source, "_TELL_SECONDS", 0.0)
    files.sql.run(LEAD)
    for name in ("a", "b"):
        files.write(f"{name}.json", *clicks(100))
    create(files)

    def reasons() -> list[str]:
        found = files.api.read(f"/api/v1/jobs/{files.name('t')}/explain")["reasons"]
        return [f"{reason['code']}: {reason['text']}" for reason in found]

    assert reasons()[0].startswith("not_started")
    with closing(files.query("t", max_bytes=2_000)) as query:
        assert query.batch()
        assert query.batch()
        assert reasons()[0] == f"behind: 2 files of {files.name('s')} not read yet"
        query.drain()
    assert [reason.partition(":")[0] for reason in reasons()] == ["finished"]


def test_totals_of_json_lines_and_the_end(files: Files) -> None:
    files.write("a.json", *clicks(100))
    files.write("b.json", *clicks(100, 100))
    create(files)
    assert files.run_job("t", max_bytes=2_000) > 3
    found = files.data("t")
    assert minutes(found) == expected(200)
    assert len(found) == len(expected(200))
    job = files.job("t")
    assert (job["state"], job["runsIn"], job["dead"]) == ("finished", "own query", 0)
    assert (job["run"]["files"], job["run"]["records"], job["run"]["bytesLeft"]) == (2, 200, 0)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_csv_with_and_without_a_header(files: Files, delimiter: str) -> None:
    lines = [delimiter.join(map(str, click.values())) for click in clicks(300)]
    files.write("a.csv", delimiter.join(("K", "n", "at")), *lines[:150])
    files.write("b.csv", delimiter.join(("at", "n", "extra", "k")), *(
        delimiter.join((str(click["at"]), str(click["n"]), '"a ""quoted"" one"', str(click["k"])))
        for click in clicks(150, 150)
    ))  # fmt: skip
    create(files, format="csv", delimiter=delimiter)
    assert files.run_job("t", max_bytes=3_000) > 3
    assert minutes(files.data("t")) == expected(300)
    (files.folder / "plain").mkdir()
    files.write("plain/a.csv", *lines)
    files.begin()
    create(files, format="csv", delimiter=delimiter, header="false", path=str(files.folder / "plain"))
    files.run_job("t", max_bytes=3_000)
    assert minutes(files.data("t")) == expected(300)


def test_parquet_in_row_groups(files: Files) -> None:
    frame(3000).write_parquet(files.folder / "a.parquet", row_group_size=700)
    frame(100, 3000).select("at", "n", pl.lit(1).alias("more"), "k").write_parquet(files.folder / "b.parquet")
    create(files, format="parquet")
    assert files.run_job("t", max_rows=500, max_bytes=10**7) >= 6
    assert minutes(files.data("t")) == expected(3100)


def test_text_is_one_column(files: Files) -> None:
    files.write("a.log", "2026-01-31 one", "", "2026-01-31 zwölf")
    create(files, "", "select upper(value) as v from {s} where value <> ''", format="text")
    files.run_job("t")
    assert [row["v"] for row in files.data("t")] == ["2026-01-31 ONE", "2026-01-31 ZWÖLF"]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_files_are_read_in_several_batches(files: Files, suffix: str) -> None:
    text = files.write("a.json", *clicks(3000))
    data = text.read_bytes()
    packed = gzip.compress(data) if suffix == "gz" else pa.Codec("zstd").compress(data, asbytes=True)
    (files.folder / f"a.json.{suffix}").write_bytes(packed)
    text.unlink()
    create(files)
    assert files.run_job("t", max_bytes=30_000) > 3
    assert minutes(files.data("t")) == expected(3000)
    assert files.job("t")["run"]["bytes"] == len(packed)


@pytest.mark.parametrize("fails_after", [0, 1])
def test_batches_that_fail_and_are_run_again_change_nothing(files: Files, fails_after: int) -> None:
    files.write("a.json", *clicks(1000))
    create(files, query="select k, n, sum(n) over (rows window buffer 4 rows partition by k) as s from {s}")
    query = files.query("t", max_rows=100)
    chance = random.Random(fails_after)
    while query.batch(fails_after=fails_after if chance.random() < 0.5 else None):
        pass
    query.close()
    found = sorted((row["n"], row["s"]) for row in files.data("t"))
    assert found == [(n, sum(range(n, max(-1, n - 12), -3))) for n in range(1000)]
    assert files.job("t")["run"]["rows"] == 1000


def test_a_lost_checkpoint_gives_no_row_twice(files: Files) -> None:
    files.write("a.json", *clicks(500))
    create(files)
    query = files.query("t", max_rows=100)
    assert query.batch()
    assert query.batch()
    query.begin_again()
    query.drain()
    query.close()
    assert minutes(files.data("t")) == expected(500)
    assert len(files.data("t")) == len(expected(500))
    assert files.job("t")["run"]["records"] == 500


def test_new_files_are_read_when_they_have_settled(files: Files) -> None:
    files.write("a.json", *clicks(100))
    create(files, mode="stream", query="select n from {s}")
    query = files.query("t")
    query.drain()
    assert len(files.data("t")) == 100
    growing = files.write("b.json", *clicks(50, 100))
    files.write("_hidden.json", "nonsense")
    with growing.open("a") as file:
        file.write('{"k": "k0", "n": 150, "at": null}\n')
    query.restart()
    while len(files.data("t")) < 151:  # a file is read once a second check finds it unchanged
        query.drain()
    query.close()
    assert [row["n"] for row in files.data("t")] == list(range(151))
    assert files.job("t")["state"] == "running"


def test_a_file_that_grows_while_its_job_starts_is_read_when_it_has_settled(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = files.write("a.json", *clicks(50))
    files.write("b.json", *clicks(50, 51))
    create(files, mode="stream", query="select n from {s}")
    listing = Location.files

    def files_then_more(location: Location) -> list[Found]:
        found = listing(location)
        if len(growing.read_text().splitlines()) == 50:
            with growing.open("a") as file:
                file.write('{"k": "k0", "n": 50, "at": null}\n')
        return found

    monkeypatch.setattr(Location, "files", files_then_more)
    with closing(files.query("t")) as query:
        while len(files.data("t")) < 101:
            query.drain()
    assert sorted(row["n"] for row in files.data("t")) == list(range(101))


def test_silence_closes_windows_and_a_backlog_does_not(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write("a.json", *clicks(90))
    files.run(
        files.source(COLUMNS, mode="stream") + f"create stream {{t}} as {MINUTES} with (idle_timeout = '30s')"
    )
    query = files.query("t", max_bytes=1000)
    ahead = 0.0
    assert query.batch()
    began = query.offset["tick"]
    monkeypatch.setattr(job_source, "monotonic", lambda: monotonic() + ahead)
    while query.batch():
        if len(files.data("t")) == 0:
            ahead += 60.0  # slow batches
    assert set(minutes(files.data("t")).values()) == {v for k, v in expected(90).items() if "12:00" in str(k)}
    assert query.offset["tick"] == began
    query.batch()
    ahead += 60.0
    query.drain()
    assert 60_000_000 <= query.offset["tick"] - began < 110_000_000
    query.close()
    assert minutes(files.data("t")) == expected(90)


def test_records_after_a_long_pause_are_not_ahead_of_their_time(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's clock stands still while the job is down; `max_ahead` is judged by the wall clock."""
    ahead, day = timedelta(), timedelta(days=1)

    def at(later: timedelta) -> list[dict[str, object]]:
        now = datetime.now(UTC) + later
        return [{"k": "k", "n": n, "at": (now + timedelta(seconds=n)).isoformat()} for n in range(3)]

    def job_news(store: PipelineStore, job: Stream, run: str) -> JobNews:
        news = real(store, job, run)
        return news._replace(now=news.now + int(ahead.total_seconds() * 1e6))

    real = PipelineStore.job_news
    monkeypatch.setattr(PipelineStore, "job_news", job_news)
    files.write("a.json", *at(ahead))
    create(files, mode="stream", query=MINUTES.replace("1m", "1h"))
    with closing(files.query("t")) as query:
        query.drain()
        query.offset.pop("now", None)  # as in checkpoints of earlier versions
        began = query.offset["tick"]
        ahead = 25 * day
        files.write("b.json", *at(ahead - day / 2), *at(ahead + day / 2), *at(ahead + 2 * day))
        query.restart()
        while query.offset["position"] != [2, 0]:
            query.batch(fails_after=1)
        assert query.offset["tick"] - began < 60_000_000
    assert files.job("t")["run"]["records"] == 9
    assert [dead["reason"] for dead in files.dead("t")] == [
        "the event time is more than 1d after the push (max_ahead)"
    ] * 3


def test_silence_closes_windows_of_today_after_a_long_pause(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's clock measures silence; whether a window has ended is judged by the wall clock."""
    ahead, idle = timedelta(), 0.0

    def job_news(store: PipelineStore, job: Stream, run: str) -> JobNews:
        news = real(store, job, run)
        return news._replace(now=news.now + int((ahead.total_seconds() + idle) * 1e6))

    def click(k: str) -> dict[str, object]:
        return {"k": k, "n": 1, "at": (datetime.now(UTC) + ahead).isoformat()}

    real = PipelineStore.job_news
    monkeypatch.setattr(PipelineStore, "job_news", job_news)
    monkeypatch.setattr(job_source, "monotonic", lambda: monotonic() + idle)
    files.write("a.json", click("a"))
    windows = MINUTES.replace("1m", "10s")
    create(files, mode="stream", query=windows + " with (idle_timeout = '30s')")
    with closing(files.query("t")) as query:
        query.drain()
        ahead = timedelta(hours=25)
        files.write("b.json", click("b"))
        query.restart()
        while query.offset["position"] != [2, 0]:
            query.batch(fails_after=1)
        query.drain()
        assert files.data("t") == []  # the pause is no silence: more of the same window could follow
        idle = 20.0
        query.drain()
        assert files.data("t") == []
        idle = 50.0
        query.drain()
        assert sorted(str(row["k"]) for row in files.data("t")) == ["a", "b"]
        assert query.drain() == 0
    assert (files.job("t")["dead"], files.job("t")["late"]) == (0, 0)


def test_bad_lines_are_dead_records_with_their_position(files: Files) -> None:
    path = files.write(
        "a.json", clicks(1)[0], "{not json", "", "[1]", {"k": "a", "n": "x", "at": 0}, clicks(1)[0]
    )
    create(files, query="select n from {s}")
    files.run_job("t")
    assert [row["n"] for row in files.data("t")] == [0, 0]
    reasons = sorted(dead["reason"] for dead in files.dead("t"))
    second = len(path.read_bytes().splitlines(keepends=True)[0])
    assert len(reasons) == 3
    assert any(f"{path} at byte {second}: not a JSON object" in reason for reason in reasons)
    assert any('n is "x", not a BIGINT; it would fit STRING' in reason for reason in reasons)
    assert files.job("t")["dead"] == 3


def test_bad_csv_lines_are_dead_records(files: Files) -> None:
    files.write(
        "a.csv",
        "k,n,at",
        "a,1,2026-01-31T12:00:00Z",
        "b,2",
        'c,"3",2026-01-31T12:00:00Z',
        "d,4,x,y",
        "e,5.5,",
    )
    create(files, query="select k, n from {s}", format="csv")
    files.run_job("t")
    assert [(row["k"], row["n"]) for row in files.data("t")] == [("a", 1), ("c", 3)]
    reasons = " | ".join(sorted(dead["reason"] for dead in files.dead("t")))
    assert "2 values, not 3: b,2" in reasons
    assert "4 values, not 3" in reasons
    assert "n is 5.5, not a BIGINT" in reasons


@pytest.mark.parametrize(
    ("name", "header", "good", "bad"),
    [("a.json", [], ['{"k": "x"}', '{"k": "y"}'], "{bad"), ("a.csv", ["k,n"], ["x,1", '"y",2'], '"x,1"')],
)
def test_bad_lines_are_not_counted(
    files: Files, name: str, header: list[str], good: list[str], bad: str
) -> None:
    files.write(name, *header, good[0], bad, good[1])
    create(files, "k string, n bigint", "select count(*) as c from {s} emit final", format=name[2:])
    files.run_job("t")
    assert [row["c"] for row in files.data("t")] == [2]
    assert [bad in dead["reason"] for dead in files.dead("t")] == [True]


def test_the_event_time_of_a_line_is_the_time_of_its_record(files: Files) -> None:
    files.write("a.json", *clicks(3))
    create(files, query="select n, _event_time as e, _created_at as c from {s}")
    files.run_job("t")
    found = files.data("t")
    assert [row["n"] for row in found] == [0, 1, 2]
    assert all(row["e"] == row["c"] and row["e"] is not None for row in found)


@pytest.mark.parametrize("option", ["header", "delimiter"])
@pytest.mark.parametrize("format_", ["json", "parquet", "text", None])
def test_options_of_csv_are_refused_for_other_formats(files: Files, option: str, format_: str | None) -> None:
    path = files.write("a.json", *clicks(1))
    given = {"path": str(path), option: "true" if option == "header" else ";"}
    reason = files.refused(files.source(COLUMNS, **given, **({} if format_ is None else {"format": format_})))
    assert reason.startswith(
        f"{option} is an option of CSV, and the format is {format_ or 'json'}; remove it"
    )
    assert files.run(files.source(COLUMNS, **given, format="csv"))


def test_decimals_of_csv_keep_all_digits_or_are_dead(files: Files) -> None:
    files.write("a.csv", "d", "1.25", "1.2500", "-3", "1.239", "x")
    create(files, "d decimal(10, 2)", "select cast(d as string) as d from {s}", format="csv")
    files.run_job("t")
    assert [row["d"] for row in files.data("t")] == ["1.25", "1.25", "-3.00"]
    assert files.job("t")["dead"] == 2


def test_truncated_files_give_their_complete_lines_and_a_dead_record(files: Files) -> None:
    text = files.write("a.json", *clicks(20_000))
    data = gzip.compress(text.read_bytes())
    text.unlink()
    (files.folder / "a.json.gz").write_bytes(data[: len(data) // 2])
    os.utime(files.folder / "a.json.gz", (1, 1))
    files.write("b.json", *clicks(10))
    create(files, query="select n from {s}")
    files.run_job("t", max_bytes=10**6, max_rows=10**6)
    assert 5_000 < len(files.data("t")) < 15_000
    assert any("the file is truncated" in dead["reason"] for dead in files.dead("t"))
    assert files.job("t")["state"] == "finished"


def test_a_cut_off_parquet_file_is_one_dead_record(files: Files) -> None:
    frame(100).write_parquet(files.folder / "a.parquet")
    whole = (files.folder / "a.parquet").read_bytes()
    (files.folder / "b.parquet").write_bytes(whole[:-10])
    create(files, format="parquet", query="select n from {s}")
    files.run_job("t")
    assert len(files.data("t")) == 100
    assert ["not a Parquet file" in dead["reason"] for dead in files.dead("t")] == [True]


def test_a_file_that_was_changed_stops_the_job(files: Files) -> None:
    path = files.write("a.json", *clicks(1000))
    create(files, query="select n from {s}")
    query = files.query("t", max_rows=100)
    assert query.batch()
    files.write("a.json", *clicks(10))
    with pytest.raises(ReadFailed, match=r"was modified after it was listed.*restore the old one"):
        query.drain()
    path.unlink()
    with pytest.raises(ReadFailed, match="was deleted before it was read"):
        query.drain()
    query.close()


def test_a_line_that_is_too_long_fails_the_job(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lines, "LONGEST", 100_000)
    path = files.write("a.json", clicks(1)[0], "x" * 300_000, clicks(1)[0])
    create(files, query="select n from {s}")
    with (
        closing(files.query("t", max_bytes=100_000)) as query,
        pytest.raises(ReadFailed, match=rf"{path}: the line .* is longer than 100000 bytes; is the format"),
    ):
        query.drain()


def test_another_grace_changes_a_stream_in_place_and_starts_a_sink_again(files: Files) -> None:
    files.write("a.json", *clicks(10))
    create(files, mode="stream")
    to = f"connector = 'files', path = '{files.folder}_out'"
    files.run(f"create sink {{u}} as {MINUTES} with ({to})")
    (stream, sink) = files.run(
        f"create or replace stream {{t}} as {MINUTES} with (grace = '10s');"
        f"create or replace sink {{u}} as {MINUTES} with (grace = '10s', {to})"
    )
    assert (stream["version"], stream["how"]) == (1, "in place")
    assert (sink["version"], sink["how"]) == (2, "by position")


def test_a_schema_that_changes(files: Files) -> None:
    frame(10).write_parquet(files.folder / "a.parquet")
    frame(10, 10).drop("n").write_parquet(files.folder / "b.parquet")
    frame(10, 20).with_columns(pl.col("n").cast(pl.String)).write_parquet(files.folder / "c.parquet")
    frame(10, 30).with_columns(pl.lit("x").alias("n")).write_parquet(files.folder / "d.parquet")
    create(files, format="parquet", query="select n, k from {s}")
    files.run_job("t")
    found = [row["n"] for row in files.data("t")]
    assert sorted(n for n in found if n is not None) == [*range(10), *range(20, 30)]
    assert found.count(None) == 10
    assert files.job("t")["dead"] == 10


def test_groups_without_windows_end_with_one_row_for_each_key(files: Files) -> None:
    files.write("a.json", *clicks(100))
    create(files, query="select k, count(*) as c from {s} group by k emit final")
    files.run_job("t", max_rows=20)
    assert sorted((row["k"], row["c"]) for row in files.data("t")) == [("k0", 34), ("k1", 33), ("k2", 33)]


def test_groups_without_windows_can_keep_their_values(files: Files) -> None:
    files.write("a.json", *clicks(100))
    create(
        files,
        query="select k, median(n) as m, percentile(n, 0.25) as p, collect_list(n) as l,"
        " collect_set(n % 2) as s from {s} group by k emit final",
    )
    files.run_job("t", max_rows=20)
    assert {row["k"]: (row["m"], row["p"], row["l"], row["s"]) for row in files.data("t")} == {
        f"k{k}": (
            statistics.median(range(k, 100, 3)),
            statistics.quantiles(range(k, 100, 3), n=4, method="inclusive")[0],
            [*range(k, 100, 3)],
            [k % 2, 1 - k % 2],
        )
        for k in range(3)
    }


def test_a_group_with_too_many_values_is_a_dead_row(files: Files) -> None:
    files.write("a.json", *({"k": "a" if n else "b", "n": n} for n in range(MOST_VALUES + 2)))
    create(files, query="select k, collect_list(n) as l from {s} group by k emit final")
    files.run_job("t")
    assert files.data("t") == [{"k": "b", "l": [0]}]
    (dead,) = files.dead("t")
    assert dead["key"] == "a"
    assert dead["reason"].startswith("a window or group has more than 100,000 values")


def test_columns_are_sampled_when_none_are_declared(files: Files) -> None:
    files.write("a.csv", "name,n,x,at,day,ok", "a,1,1.5,2026-01-31T12:00:00Z,2026-01-31,true")
    (made,) = files.run(files.source(format="csv"))
    columns = "name STRING, n BIGINT, x DOUBLE, at TIMESTAMP, day DATE, ok BOOLEAN"
    assert f"({columns})" in made["statement"].replace("`", "")
    (shown,) = files.run("describe {s}")
    assert [row[1] for row in shown["rows"]] == ["string", "bigint", "double", "timestamp", "date", "boolean"]
    (listed,) = files.run("show sources")
    assert [row[1] for row in listed["rows"] if row[0] == files.name("s")] == ["files"]


@pytest.mark.parametrize(
    ("columns", "options", "error"),
    [
        ("", {}, "has no files yet"),
        ("n bigint", {"path": "relative"}, "use an absolute path"),
        ("n bigint", {"path": "/no/such/folder"}, "does not exist; create the folder first"),
        ("n bigint", {"format": "text"}, "text has one column"),
        ("n bigint", {"mode": "twice"}, "one of 'stream', 'once'"),
        ("n bigint", {"delimiter": "::"}, "one character"),
        ("n bigint", {"colour": "red"}, "has no option colour"),
    ],
)
def test_invalid_sources(files: Files, columns: str, options: dict[str, str], error: str) -> None:
    assert error in files.refused(files.source(columns, **options))


def test_patterns_and_folders(files: Files, tmp_path: Path) -> None:
    for name in ("2026/01/a.json", "2026/02/b.json", "2026/02/b.txt", "other/c.json"):
        files.write(name, {"n": len(name)})
    create(files, "n bigint", "select n, _partition as p from {s}", path=f"{tmp_path}/20*/**/*.json")
    files.run_job("t")
    names = sorted(str(row["p"]).removeprefix(f"{tmp_path}/") for row in files.data("t"))
    assert names == ["2026/01/a.json", "2026/02/b.json"]


def test_start_skips_existing_files(files: Files) -> None:
    files.write("a.json", *clicks(10))
    os.utime(files.folder / "a.json", (10**9, 10**9))
    files.write("b.json", *clicks(10, 10))
    create(files, query="select n from {s} with (start = '2020-01-01')")
    files.run_job("t")
    assert [row["n"] for row in files.data("t")] == list(range(10, 20))


def test_a_lost_checkpoint_does_not_move_the_start(files: Files) -> None:
    """`latest` is evaluated once: files that came since the first start are read again, not skipped."""
    files.write("a.json", *clicks(10))
    create(files, mode="stream", query="select n from {s} with (start = 'latest')")
    with closing(files.query("t", max_rows=100)) as query:
        query.drain()
        assert files.data("t") == []
        files.write("b.json", *clicks(200, 10))
        while len(files.data("t")) == 0:
            query.batch()
        assert len(files.data("t")) < 200
        query.begin_again()
        query.drain()
        assert [row["n"] for row in files.data("t")] == list(range(10, 210))
        files.write("c.json", *clicks(10, 210))
        query.begin_again()
        while len(files.data("t")) < 210:
            query.drain()
    assert [row["n"] for row in files.data("t")] == list(range(10, 220))


@pytest.mark.parametrize("is_known", [True, False])
def test_a_start_by_time_skips_only_files_listed_first(files: Files, is_known: bool) -> None:
    """A file that arrives later is read whatever its modification time, also after a lost checkpoint."""
    for name, first in (("a", 0), ("b", 10)):
        files.write(f"{name}.json", *clicks(10, first))
    os.utime(files.folder / "a.json", (10**9, 10**9))
    create(files, mode="stream", query="select n from {s} with (start = '2020-01-01')")
    with closing(files.query("t")) as query:
        query.drain()
        files.write("c.json", *clicks(10, 20))
        os.utime(files.folder / "c.json", (10**9, 10**9))
        while len(files.data("t")) < 20:
            query.drain()
        with connect(files.database_url) as connection:
            if not is_known:  # as in databases of earlier versions
                connection.execute("DELETE FROM queenspark.job_runs")
            connection.execute("DELETE FROM queenspark.messages")
        query.begin_again()
        query.drain()
    assert sorted(row["n"] for row in files.data("t")) == list(range(10, 30))


def test_a_job_is_controlled_like_others(files: Files) -> None:
    files.write("a.json", *clicks(10))
    create(files, mode="stream", query="select n from {s}")
    assert "is used by the job" in files.refused("drop source {s}")
    files.run("pause job {t}")
    assert files.job("t")["state"] == "paused"
    assert files.name("t") not in files.wanted()
    files.run("resume job {t}")
    assert files.name("t") in files.wanted()
    assert "in its own Spark query" in str(files.run("explain select n from {s}"))
    (replaced,) = files.run("create or replace stream {t} as select n + 1 as n from {s}")
    assert (replaced["version"], replaced["how"]) == (2, "by position")
    files.run_job("t")
    assert [row["n"] for row in files.data("t")] == list(range(1, 11))
    files.run("drop source {s} cascade")
    assert files.name("t") not in files.wanted()
    assert "there is no stream, source or queue" in files.refused("select n from {s}")


def test_a_checkpoint_of_another_database_is_refused(files: Files) -> None:
    files.write("a.json", *clicks(1000))
    create(files, query="select n from {s}")
    query = files.query("t", max_rows=100)
    assert query.batch()
    with connect(files.database_url) as connection:
        connection.execute("DELETE FROM queenspark.job_progress")
    with pytest.raises(Refused, match="belongs to another database"):
        query.drain()
    query.close()


def test_a_select_over_files_ends_with_them(files: Files) -> None:
    files.write("a.json", *clicks(10))
    files.run(files.source(COLUMNS))
    with files.api.http.stream(
        "POST", "/api/v1/sql", json={"sql": f"select n from {files.name('s')}", "timeout": 60_000}
    ) as response:
        lines = response.iter_lines()
        assert "columns" in next(lines)
        (temporary,) = [row for row in files.wanted().values() if row.body.namespace == "%select"]
        query = LocalJob(files.database_url, temporary)
        query.drain()
        query.close()
        assert [line for line in lines if line] == [f"[{n}]" for n in range(10)]


def test_one_job_too_many_is_refused(files: Files, module_broker: StartBroker) -> None:
    # The job of another test's SELECT ends by itself.
    assert wait_until(
        lambda: all(row.body.namespace != "%select" for row in files.wanted().values()), within=60
    )
    broker = module_broker(external_jobs=len(files.wanted()) + 1)  # those of other tests are there, too
    with closing(Files(broker.url, broker.database_url)) as own:
        own.begin()
        own.folder = files.folder
        own.write("a.json", *clicks(3))
        create(own, query="select n from {s}")
        refused = own.refused("create stream {u} as select n from {s}")
        assert "jobs over external sources and sinks already exist" in refused
        assert own.name("t") in refused
        assert "QUEENSPARK_EXTERNAL_JOBS" in own.refused("select n from {s}")
        own.run_job("t")  # a finished job blocks no others
        own.run("create stream {u} as select n from {s}; drop stream {u}")


def test_a_job_that_cannot_be_planned_fails_alone(files: Files) -> None:
    files.write("a.json", *clicks(3))
    create(files, query="select n from {s}")
    definition = files.wanted()[files.name("t")]
    broken = {**(definition.body.query or {}), "select": "SELECT x FROM"}
    body = msgspec.structs.replace(definition.body, query=broken)
    query = JobQuery(
        files.database_url, msgspec.structs.replace(definition, body=body), checkpoints="", max_rows=1
    )
    with pytest.raises(JobFailed, match="the job cannot be planned"):
        query.start(cast(SparkSession, None), 0)
    query.failed("queenspark.pipeline.errors.JobFailed: the job cannot be planned")
    query.close()
    job = files.job("t")
    assert (job["state"], job["lastError"]) == ("failed", "the job cannot be planned")
