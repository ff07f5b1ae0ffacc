"""CREATE SINK … FROM a stream, without Spark: statements, rows, dead records, retention."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from queenspark.store.log import LogReader
from tests.database import connect
from tests.external.files import Files
from tests.external.sinks import LocalSink

COLUMNS = "k string, n bigint, at timestamp"


def stream(files: Files, columns: str = COLUMNS) -> None:
    """A schema over a queue."""
    files.run(f"create stream {{s}} ({columns}) with (queue = '{files.name('q')}')")


def sink(files: Files, name: str = "out", source: str = "{s}", **options: str) -> dict[str, Any]:
    """CREATE SINK into the folder of the test."""
    given = {"connector": "files", "path": str(files.folder / name), **options}
    listed = ", ".join(f"{key} = '{value}'" for key, value in given.items())
    (made,) = files.run(f"create or replace sink {{{name}}} from {source} with ({listed})")
    return made


def query(files: Files, name: str = "out", **limits: int) -> LocalSink:
    return LocalSink(files.database_url, files.wanted()[files.name(name)], **limits)


def records(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"k": f"k{n % 3}", "n": n, "at": f"2026-01-31T12:{n // 60 % 60:02}:{n % 60:02}Z", "more": [n]}
        for n in range(first, first + count)
    ]


def test_messages_come_out_as_columns_each_once(files: Files) -> None:
    stream(files)
    files.push("q", records(1000))
    made = sink(files)
    assert (made["kind"], made["version"], made["changed"]) == ("create_sink", 1, True)
    running = query(files, max_rows=130)
    while running.batch():
        pass
    rows = running.rows()
    assert sorted(row["n"] for row in rows) == list(range(1000))
    first = next(row for row in rows if row["n"] == 61)
    assert first == {"k": "k1", "n": 61, "at": datetime(2026, 1, 31, 12, 1, 1, tzinfo=UTC)}
    files.push("q", records(10, 1000))
    running.restart()
    running.drain()
    running.restart()  # a new process reports its progress at once
    running.drain()
    running.close()
    assert sorted(row["n"] for row in running.rows()) == list(range(1010))
    job = files.job("out")
    assert (job["state"], job["runsIn"], job["sources"]) == ("running", "own query", [files.name("q")])
    assert (job["run"]["records"], job["dead"], job["lagSeconds"]) == (1010, 0, 0.0)


def test_a_row_that_does_not_fit_is_a_dead_record(files: Files) -> None:
    stream(files)
    files.push("q", [{"k": "a", "n": 1}, {"k": "b", "n": "x"}, 7, {"k": "c", "n": 2}])
    sink(files)
    running = query(files)
    running.drain()
    running.close()
    assert sorted(row["n"] for row in running.rows()) == [1, 2]
    reasons = sorted(dead["reason"] for dead in files.dead("out"))
    assert len(reasons) == 2
    assert any('n is "x", not a BIGINT' in reason for reason in reasons)
    assert any("not a JSON object" in reason for reason in reasons)
    assert files.job("out")["dead"] == 2


def test_metadata_and_folders_by_time_are_columns(files: Files) -> None:
    stream(files, "n bigint")
    files.push("q", [{"n": n} for n in range(3)], partition="p")
    files.run("create stream {t} as select n, n * 2 as m from {s}")
    files.drain()
    sink(
        files, source="{t}", metadata="_partition, _version, _revision, _event_time", partition_by="day, hour"
    )
    running = query(files)
    running.drain()
    running.close()
    rows = running.rows()
    assert {(row["_partition"], row["_version"], row["_revision"]) for row in rows} == {("p", 1, None)}
    for row in rows:
        assert row["day"] == row["_event_time"].date()
        assert row["hour"] == row["_event_time"].strftime("%Y-%m-%dT%H")
    assert sorted(row["m"] for row in rows) == [0, 2, 4]


def test_several_queues_begin_where_each_is_wanted(files: Files) -> None:
    files.push("a", [{"n": 1}])
    files.push("b", [{"n": 2}])
    queues = f"{files.name('a')}, {files.name('b')}"
    files.run(f"create stream {{s}} (n bigint) with (queues = '{queues}')")
    sink(files, start="latest", metadata="_queue")
    files.push("a", [{"n": 3}])
    files.push("b", [{"n": 4}])
    running = query(files)
    running.drain()
    running.close()
    assert sorted((row["n"], row["_queue"]) for row in running.rows()) == [
        (3, files.name("a")),
        (4, files.name("b")),
    ]


def test_batches_that_fail_are_given_out_again_as_they_were(files: Files) -> None:
    stream(files)
    files.push("q", records(300))
    sink(files)
    running = query(files, max_rows=100)
    assert running.batch(fails_after=1)
    failed, again = running.outputs[0], running.outputs[1:]
    assert failed["rows"].tolist() == again[0]["rows"].tolist()
    running.drain()
    running.close()


def test_it_is_listed_and_described(files: Files) -> None:
    stream(files)
    made = sink(files, format="json", partition_by="k")
    assert made["statement"].startswith(f"CREATE SINK {files.name('out')} FROM {files.name('s')} WITH (")
    (shown,) = files.run("show sinks")
    assert [row[1] for row in shown["rows"] if row[0] == files.name("out")] == ["files"]
    (shown,) = files.run("show jobs")
    columns = [column["name"] for column in shown["columns"]]
    (job,) = [dict(zip(columns, row, strict=True)) for row in shown["rows"] if row[0] == files.name("out")]
    assert (job["state"], job["runs_in"]) == ("running", "own query")
    assert not sink(files, format="json", partition_by="k")["changed"]
    path = files.folder / "other"
    (lines,) = files.run(
        f"explain create sink {{other}} from {{s}} with (connector = 'files', path = '{path}')"
    )
    assert "in its own Spark query, because it writes to an external system" in lines["rows"][0][0]
    assert not path.exists()


def test_pause_resume_replace_and_drop(files: Files) -> None:
    stream(files)
    files.push("q", records(10))
    sink(files)
    name = files.name("out")
    files.run("pause job {out}")
    assert files.job("out")["state"] == "paused"
    assert name not in files.wanted()
    files.run("resume job {out}")
    assert name in files.wanted()
    made = sink(files, format="json")
    assert (made["version"], made["changed"], made["how"]) == (2, True, "by position")
    running = query(files)
    running.drain()
    running.close()
    assert len(running.rows()) == 10
    assert "is used by the job" in files.refused("drop stream {s}")
    files.run("drop sink {out}")
    assert name not in files.wanted()
    files.run("drop stream {s}")


def test_a_stream_that_a_sink_reads_keeps_its_columns(files: Files) -> None:
    stream(files)
    files.run("create stream {t} as select k, n from {s}")
    sink(files, source="{t}")
    refused = files.refused("create or replace stream {t} as select k, cast(n as string) as n from {s}")
    assert f"the job {files.name('out')} reads {files.name('t')}" in refused
    files.run("create or replace stream {t} as select k, n from {s} where n > 1")
    assert "is used by the job" in files.refused("drop stream {t}")


def test_retention_waits_for_the_sink(files: Files) -> None:
    stream(files)
    files.push("q", records(100))
    sink(files)

    def needs() -> tuple[int, int]:
        with connect(files.database_url) as connection, LogReader(files.database_url) as log:
            ids = list(log.queues([files.name("q")]).values())
            set_path = (
                "SELECT set_config('search_path', (SELECT name FROM queenspark.function_sets LIMIT 1), false)"
            )
            connection.execute(set_path)
            (found,) = connection.execute("SELECT needs FROM stream_needs(%s)", (ids,)).fetchall()
        return tuple(found[0])

    before = needs()
    running = query(files, max_rows=40)
    running.batch()
    running.batch()
    running.restart()  # reports its progress at the next check
    running.batch()
    between = needs()
    running.drain()
    running.restart()
    running.drain()
    running.close()
    assert before < between < needs()
    files.push("q", records(1, 100))
    assert files.job("out")["lagSeconds"] >= 0.0


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("create sink {o} from {s} with (connector = 'files', path = 'out')", "use an absolute path"),
        ("create sink {o} from {s} with (connector = 'files', path = '/proc/out')", "is not writable"),
        (
            "create sink {o} from {s} with (connector = 'files', path = '{P}', format = 'xml')",
            "must be one of",
        ),
        (
            "create sink {o} from {s} with (connector = 'files', path = '{P}', mode = 'once')",
            "has no option mode",
        ),
        ("create sink {o} from {x} with (connector = 'files', path = '{P}')", "there is no stream"),
        ("create sink {o} from {raw} with (connector = 'files', path = '{P}')", "columns of"),
        (
            "create sink {o} from {s} with (connector = 'files', path = '{P}', partition_by = 'kk')",
            "did you mean k",
        ),
        (
            "create sink {o} from {s} with (connector = 'files', path = '{P}', partition_by = 'k, n, at')",
            "contains every column",
        ),
        (
            "create sink {o} from {s} with (connector = 'files', path = '{P}', metadata = '_versoin')",
            "did you mean _version",
        ),
        ("create sink {o} from {s} with (connector = 'files', path = '{taken}')", "writes to"),
        ("create sink {out} from {s} with (connector = 'files', path = '{P}')", "already exists"),
        (
            "create sink {o} as select n from {s} with (connector = 'files', path = '{P}')",
            "not an external source",
        ),
        ("create sink {o} from {src} with (connector = 'files', path = '{P}')", "is an external source"),
        ("select * from {out}", "is a sink"),
    ],
)
def test_mistakes_are_refused_with_the_fix(files: Files, statement: str, says: str) -> None:
    stream(files)
    sink(files)
    files.push("raw", [{"a": 1}])
    files.write("in/a.json", {"a": 1})
    files.run(files.source("a bigint", name="src", path=str(files.folder / "in")))
    statement = statement.replace("{P}", str(files.folder / "p")).replace(
        "{taken}", str(files.folder / "out")
    )
    assert says in files.refused(statement)


def test_a_dry_run_leaves_no_folder(files: Files) -> None:
    stream(files)
    path = files.folder / "deep" / "out"
    options = f"connector = 'files', path = '{path}'"
    statement = f"create sink {files.name('o')} from {files.name('s')} with ({options})"
    response = files.api.post("/api/v1/sql", {"sql": statement, "dryRun": True})
    assert response.status_code == 200, response.text
    assert not (files.folder / "deep").exists()


def test_arrays_are_not_for_csv(files: Files) -> None:
    stream(files, "a array<bigint>, k string")
    with pytest.raises(AssertionError):
        sink(files, format="csv")
    sink(files, format="json")


def test_a_folder_with_files_of_another_sink_is_refused(files: Files, tmp_path: Path) -> None:
    stream(files)
    (tmp_path / "old" / "v1" / "_spark_metadata").mkdir(parents=True)
    path = tmp_path / "old"
    refused = files.refused(f"create sink {{o}} from {{s}} with (connector = 'files', path = '{path}')")
    assert "contains files of another sink" in refused
