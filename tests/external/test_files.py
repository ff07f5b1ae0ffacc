"""Jobs over files, without Spark: formats, windows, the end, and whatever can be wrong with a file."""

import gzip

from tests.external.files import Files

MINUTES = (
    "select k, count(*) as c, sum(n) as s, window_start as at from {s} group by k window tumbling(at, 1m)"
)
COLUMNS = "k string, n bigint, at timestamp"


def clicks(count: int, first: int = 0) -> list[dict[str, object]]:
    return [
        {"k": f"k{n % 3}", "n": n, "at": f"2026-01-31T12:{n // 60 % 60:02d}:{n % 60:02d}Z"}
        for n in range(first, first + count)
    ]


def minutes(found: list[dict[str, object]]) -> dict[tuple[object, object], tuple[object, object]]:
    return {(row["k"], row["at"]): (row["c"], row["s"]) for row in found}


def expected(count: int) -> dict[tuple[object, object], tuple[object, object]]:
    totals: dict[tuple[object, object], list[int]] = {}
    for n in range(count):
        at = f"2026-01-31T12:{n // 60:02d}:00.000000Z"
        totals.setdefault((f"k{n % 3}", at), []).append(n)
    return {key: (len(values), sum(values)) for key, values in totals.items()}


def test_totals_of_json_lines_and_the_end(files: Files) -> None:
    files.write("a.json", *clicks(100))
    files.write("b.json", *clicks(100, 100))
    files.run(files.source(COLUMNS) + f"create stream {{t}} as {MINUTES}")
    assert files.run_job("t", max_bytes=2_000) > 3
    assert minutes(files.data("t")) == expected(200)
    job = files.job("t")
    assert (job["state"], job["runsIn"]) == ("finished", "own query")
    assert job["run"]["files"] == 2
    assert job["run"]["records"] == 200


def test_gz(files: Files) -> None:
    path = files.write("a.json", *clicks(2000))
    (files.folder / "a.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    files.run(files.source(COLUMNS) + f"create stream {{t}} as {MINUTES}")
    assert files.run_job("t", max_bytes=20_000) > 3
    assert minutes(files.data("t")) == expected(2000)
