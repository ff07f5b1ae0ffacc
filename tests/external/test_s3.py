"""Files in S3: read as local ones are, and the keys of a URL are never shown."""

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from queenspark.connectors.checks import Unreachable
from queenspark.connectors.files.location import Location
from queenspark.connectors.reader import ReadFailed
from tests.external.files import Files
from tests.external.s3 import S3, s3_server
from tests.external.test_files import COLUMNS, clicks

AT = datetime(2026, 1, 31, 12, 0, 0, 123_000, UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    """A server for all tests of this file."""
    with s3_server() as found:
        yield found


@pytest.fixture
def s3(server: S3) -> S3:
    """The same, with one empty bucket."""
    server.buckets = {"b": {}}
    server.requests.clear()
    return server


def lines(records: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def parquet(records: list[dict[str, object]]) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(records).write_parquet(file, row_group_size=100)
    return file.getvalue()


def create(files: Files, path: str, **options: str) -> None:
    files.run(
        files.source(COLUMNS, path=path, **options)
        + "create stream {t} as select n, _partition as p from {s}"
    )


@pytest.mark.parametrize("kind", ["json", "json.gz", "parquet"])
def test_objects_are_read_in_order_and_in_parts(files: Files, s3: S3, kind: str) -> None:
    for number in range(7):
        records = clicks(300, number * 300)
        data = parquet(records) if kind == "parquet" else lines(records)
        data = gzip.compress(data) if kind.endswith("gz") else data
        s3.put("b", f"in/day={number % 2}/{number}.{kind}", data, AT + timedelta(seconds=number))
    s3.put("b", "in/_SUCCESS", b"")
    s3.put("b", "other/8.json", lines(clicks(1)))
    create(files, s3.url("b/in"), format=kind.removesuffix(".gz"))
    assert files.run_job("t", max_rows=400) > 3
    by_path: dict[object, list[object]] = {}
    for row in files.data("t"):
        by_path.setdefault(row["p"], []).append(row["n"])
    assert by_path == {
        f"b/in/day={number % 2}/{number}.{kind}": list(range(300 * number, 300 * (number + 1)))
        for number in range(7)
    }
    assert files.job("t")["state"] == "finished"
    assert files.job("t")["run"]["files"] == 7


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("*.json", "ab"), ("%3F.json", "ab"), ("%5Ba%5D.json", "a"), ("**/*.json", "abc"), ("d%20d/*", "c")],
)
def test_patterns(s3: S3, pattern: str, found: str) -> None:
    for name in ("a.json", "b.json", "d d/c.json", "e.txt"):
        s3.put("b", f"in/{name}", b"x", AT)
    assert "".join(each.path[-6] for each in Location(s3.url(f"b/in/{pattern}")).files()) == found


def test_new_objects_are_read_as_they_appear(files: Files, s3: S3) -> None:
    """A prefix without objects is like an empty folder, at first and after they were removed."""
    create(files, s3.url("b/in"), mode="stream")
    with closing(files.query("t")) as query:
        query.drain()
        s3.put("b", "in/a.json", lines(clicks(10)))
        while len(files.data("t")) < 10:
            query.drain()
        s3.buckets["b"].clear()
        query.drain()
        s3.put("b", "in/b.json", lines(clicks(10, 10)))
        while len(files.data("t")) < 20:
            query.drain()
    assert [row["n"] for row in files.data("t")] == list(range(20))


def test_an_object_that_was_replaced_fails_the_job(files: Files, s3: S3) -> None:
    s3.put("b", "in/a.json", lines(clicks(500)), AT)
    create(files, s3.url("b/in"))
    with closing(files.query("t", max_rows=100)) as query:
        query.batch()
        s3.put("b", "in/a.json", lines(clicks(500)), AT + timedelta(seconds=1))
        with pytest.raises(ReadFailed, match=r"b/in/a\.json was modified after it was listed"):
            query.drain()


def test_columns_are_sampled(files: Files, s3: S3) -> None:
    s3.put("b", "in/a.json", b'{"n": 1, "k": "a"}\n')
    (made,) = files.run(files.source(path=s3.url("b/in")))
    assert "(n BIGINT, k STRING)" in made["statement"]


def test_credentials_and_endpoint_can_come_from_the_environment(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("b", "in/a.json", b"x")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{s3.address}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert [found.path for found in Location("s3://b/in").files()] == ["b/in/a.json"]


def test_keys_are_never_shown(files: Files, s3: S3) -> None:
    """Not in responses, and not in dead records."""
    s3.put("b", "in/a.json", lines(clicks(500)) + b"{bad\n", AT)
    path = s3.url("b/in/*.json")
    source = files.source(COLUMNS, path=path)
    shown = files.run(f"explain {source} {source}")
    shown += files.run(
        "create stream {t} as select n from {s}; explain select n from {s}; describe {s};"
        "describe extended {s}; describe extended {t}; show sources; show streams; show jobs"
    )
    files.run_job("t")
    shown += [files.job("t"), files.api.read("/api/v1/jobs"), *files.dead("t")]
    assert len(files.dead("t")) == 1
    shown_path = f"s3://{s3.access_key}:…@b/in/*.json"
    assert shown_path in str(shown)
    assert "tiger" not in str(shown)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://AKIA:tig/er77@b/in", "cannot be reached: "),
        ("s3://AKIA:tiger77@b/in?regio=x", "cannot be reached: "),
        ("s3://AKIA:tiger77@b/i[n", "cannot be reached: "),
        ("s3://b/in?access_key=AKIA&secret_key=tiger77", "cannot be reached: "),
        ("abfs://b@a.dfs.core.windows.net/in?sig=tiger77&regio=[", "cannot be reached: "),
        ("nos3://AKIA:tiger77@b/in", "cannot be reached: "),
        ("s3://AKIA:tiger77@none/in?endpoint_override={}&scheme=http&region=x", "cannot be listed: .*DENIED"),
    ],
)
def test_errors_show_no_keys(files: Files, s3: S3, url: str, reason: str) -> None:
    found = files.refused(files.source(COLUMNS, path=url.format(s3.address)))
    assert found.startswith(("s3://", "abfs://", "nos3://"))
    assert reason.split(".*", maxsplit=1)[0] in found
    assert reason.rsplit(".*", maxsplit=1)[-1] in found
    assert not [word for word in ("tiger77", "tig/er77", "er77") if word in found]


@pytest.mark.parametrize(
    ("path", "secret", "reason"),
    [
        ("none/in", None, "cannot be listed: .*NO_SUCH_BUCKET"),
        ("none/in/*.json", None, "cannot be listed: .*NO_SUCH_BUCKET"),
        ("b/in", "wrong99", "cannot be listed: .*ACCESS_DENIED"),
    ],
)
def test_what_is_wrong_is_said(s3: S3, path: str, secret: str | None, reason: str) -> None:
    with pytest.raises(Unreachable, match=reason) as caught:
        Location(s3.url(path, secret=secret)).files()
    assert caught.value.__cause__ is None
    assert "wrong99" not in str(caught.value)


def test_a_sink_cannot_have_keys_in_its_path(files: Files, s3: S3) -> None:
    """Spark shows paths in its plans and in its user interface."""
    files.run(files.source(COLUMNS))
    sink = "connector = 'files', path = 's3a://AKIA:tiger77@b/out'"
    reason = files.refused(f"create sink {{o}} as select n from {{s}} with ({sink})")
    assert "s3a://AKIA:…@b/out" in reason
    assert "fs.s3a.secret.key" in reason
