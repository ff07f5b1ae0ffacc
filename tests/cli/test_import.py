"""`queenspark import`."""

import gzip
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.access.conftest import make_key
from tests.broker_process import Broker, clean_environment
from tests.command import Command
from tests.conftest import StartBroker
from tests.wire.api import Api

Messages = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of bookmarks."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def messages(shared_broker: Broker, queue: str) -> Messages:
    """The content of the queue, in log order."""

    def read() -> list[dict[str, Any]]:
        with Api(shared_broker.url, shared_broker.database_url) as api:
            found: list[dict[str, Any]] = []
            after: str | None = None
            while True:
                page = api.read(
                    f"/api/v1/resources/queues/{queue}/log", **({"after": after} if after else {})
                )
                if not page["messages"]:
                    return found
                found += page["messages"]
                after = page["next"]

    return read


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_each_line_is_a_message(queenspark: Command, queue: str, messages: Messages, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"n": 1}', "", '{"n": 2.50}', '"x"')
    result = queenspark("import", file, "--queue", queue)
    assert (result.code, result.out) == (0, "")
    assert f"Imported 3 messages to {queue}." in result.err
    assert [message["data"] for message in messages()] == [{"n": 1}, {"n": 2.5}, "x"]


def test_csv_has_a_header_and_types(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path
) -> None:
    rows = ["\ufeffname,n,zip,ok,note", 'Ann,12.50,01234,true,"two', 'lines, ""quoted"""', "Bob,-3,7,,x"]
    file = write(tmp_path / "a.csv", *rows)
    assert queenspark("import", file, "--queue", queue).code == 0
    assert [message["data"] for message in messages()] == [
        {"name": "Ann", "n": 12.5, "zip": "01234", "ok": True, "note": 'two\nlines, "quoted"'},
        {"name": "Bob", "n": -3, "zip": 7, "ok": None, "note": "x"},
    ]


def test_csv_can_stay_strings(queenspark: Command, queue: str, messages: Messages, tmp_path: Path) -> None:
    assert (
        queenspark("import", write(tmp_path / "a.csv", "a,b", "1,"), "--queue", queue, "--strings").code == 0
    )
    assert [message["data"] for message in messages()] == [{"a": "1", "b": ""}]


def test_text_and_gzip(queenspark: Command, queue: str, messages: Messages, tmp_path: Path) -> None:
    file = tmp_path / "a.log.gz"
    file.write_bytes(gzip.compress("naïve\r\n\nlast".encode()))
    assert queenspark("import", str(file), "--queue", queue).code == 0
    assert [message["data"] for message in messages()] == ["naïve", "", "last"]


def test_parquet(queenspark: Command, queue: str, messages: Messages, tmp_path: Path) -> None:
    import polars as pl

    file = tmp_path / "a.parquet"
    frame = pl.DataFrame({"n": [1, 2, 3], "x": [0.5, float("nan"), None], "at": ["2026-01-01T00:00:00"] * 3})
    frame.with_columns(pl.col("at").str.to_datetime(time_unit="us")).write_parquet(file)
    for _ in range(2):
        assert queenspark("import", str(file), "--queue", queue, "--partition-by", "n").code == 0
    at = "2026-01-01T00:00:00.000000Z"
    assert sorted((message["partition"], *message["data"].values()) for message in messages()) == [
        ("1", 1, 0.5, at), ("2", 2, "NaN", at), ("3", 3, None, at),
    ]  # fmt: skip


def test_standard_input(queenspark: Command, queue: str, messages: Messages) -> None:
    result = queenspark("import", "-", "--queue", queue, "--partition", "p", stdin=b"1\n2\n")
    assert result.code == 0
    assert [(message["partition"], message["data"]) for message in messages()] == [("p", 1), ("p", 2)]


def test_fields_name_partition_and_transaction_id(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path
) -> None:
    file = write(
        tmp_path / "a.jsonl", '{"user": {"id": 7}, "key": "k1"}', '{"user": {"id": "ann"}, "key": "k2"}'
    )
    options = ("--partition-by", "user.id", "--transaction-id-by", "key")
    assert queenspark("import", file, "--queue", queue, *options).code == 0
    assert {(message["partition"], message["transactionId"]) for message in messages()} == {
        ("7", "k1"),
        ("ann", "k2"),
    }


def test_order_is_kept_within_each_partition(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path
) -> None:
    count = 30_000
    file = write(tmp_path / "a.jsonl", *(json.dumps({"k": f"k{n % 7}", "n": n}) for n in range(count)))
    assert queenspark("import", file, "--queue", queue, "--partition-by", "k").code == 0
    seen: dict[str, list[int]] = {}
    for message in messages():
        seen.setdefault(message["partition"], []).append(message["data"]["n"])
    assert seen == {f"k{k}": list(range(k, count, 7)) for k in range(7)}


def test_a_bad_line_stops_and_a_fixed_file_goes_on(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    file = write(path, "1", "2", "three", "4")
    result = queenspark("import", file, "--queue", queue)
    assert result.code == 1
    assert f"{file}, line 3: not valid JSON" in result.err
    write(path, "1", "2", "3", "4")
    assert queenspark("import", file, "--queue", queue).code == 0
    assert [message["data"] for message in messages()] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "lines", "line", "reason"),
    [
        ("a.jsonl", ['{"k": "a"}', "{oops", '{"k": "a"}'], 2, "not valid JSON"),
        ("a.jsonl", ['{"k": "a"}', '{"x": 1}', '{"k": "a"}'], 2, "field k is missing"),
        ("a.csv", ["k,b", "a,1", "a,1,2", "a,2"], 3, "3 values, but the header has 2 columns"),
        ("a.csv", ["k,b", "a,1", "a,\udcff", "a,2"], 3, "it is not valid UTF-8"),
        (
            "a.jsonl",
            ['{"k": "a"}', '{"k": "a", "x": ' + "[" * 70 + "]" * 70 + "}", '{"k": "a"}'],
            2,
            "nested",
        ),
    ],
)
def test_bad_lines_can_be_skipped(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path,
    name: str, lines: list[str], line: int, reason: str,
) -> None:  # fmt: skip
    file = tmp_path / name
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    result = queenspark("import", str(file), "--queue", queue, "--partition-by", "k", "--on-error", "skip")
    assert result.code == 5
    assert f"{file}, line {line}: " in result.err
    assert reason in result.err
    assert "1 line skipped" in result.err
    assert len(messages()) == 2


def test_again_nothing_new_is_imported(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    file = write(path, "a", "1", "2")
    assert queenspark("import", file, "--queue", queue).code == 0
    assert "was already imported" in queenspark("import", file, "--queue", queue).err
    with path.open("a") as grown:
        grown.write("3\n")
    assert "Imported 1 message" in queenspark("import", file, "--queue", queue).err
    assert [message["data"]["a"] for message in messages()] == [1, 2, 3]
    assert queenspark("import", file, "--queue", queue, "--again").code == 0
    assert [message["data"]["a"] for message in messages()] == [1, 2, 3, 1, 2, 3]


def test_a_file_that_changed_is_not_taken_for_the_same(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    queenspark("import", write(path, "1", "2"), "--queue", queue)
    result = queenspark("import", write(path, "7", "2", "3"), "--queue", queue)
    assert (result.code, "has changed" in result.err) == (1, True)
    assert [message["data"] for message in messages()] == [1, 2]


def test_a_last_line_that_went_on_is_not_taken_for_a_line(
    queenspark: Command, queue: str, messages: Messages, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("1\n2")
    queenspark("import", str(path), "--queue", queue)
    path.write_text("1\n23\n")
    assert "has changed" in queenspark("import", str(path), "--queue", queue).err
    path.write_text("1\n2\n3\n")
    assert queenspark("import", str(path), "--queue", queue).code == 0
    assert [message["data"] for message in messages()] == [1, 2, 3]


def test_an_import_is_continued_with_the_same_options(
    queenspark: Command, queue: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.jsonl", '{"k": "a"}', "oops")
    queenspark("import", file, "--queue", queue, "--partition-by", "k")
    result = queenspark("import", file, "--queue", queue)
    assert (result.code, "was started with --partition-by k" in result.err) == (2, True)


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_it_resumes_without_loss_or_duplicates(
    shared_broker: Broker, queenspark: Command, queue: str, messages: Messages, tmp_path: Path,
    how: signal.Signals, state: Path,
) -> None:  # fmt: skip
    count = 40_000
    file = write(tmp_path / "a.csv", "k,n", *(f"k{n % 5},{n}" for n in range(count)))
    arguments = ["import", file, "--queue", queue, "--partition-by", "k"]
    environment = {**clean_environment(url=shared_broker.url), "XDG_STATE_HOME": str(state)}
    interrupted = 0
    for _ in range(3):
        command = [sys.executable, "-m", "queenspark", *arguments]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
            _wait_for_progress(state, process)
            process.send_signal(how)
            code = process.wait(30)
        if code == 0:
            break
        # A signal that comes when the import is done already finds Python's own handlers.
        assert code == -how or (code == 130 and how != signal.SIGKILL)
        interrupted += 1
    assert interrupted > 0
    assert queenspark(*arguments).code == 0
    seen: dict[str, list[int]] = {}
    for message in messages():
        seen.setdefault(message["partition"], []).append(message["data"]["n"])
    assert seen == {f"k{k}": list(range(k, count, 5)) for k in range(5)}


def _wait_for_progress(state: Path, process: "subprocess.Popen[bytes]") -> None:
    """Until the bookmark has moved, or the process has ended."""
    folder = state / "queenspark" / "imports"

    def marks() -> list[bytes]:
        return [path.read_bytes() for path in folder.glob("*.json")]

    before = marks()
    while process.poll() is None and marks() == before:
        time.sleep(0.005)


def test_a_full_queue_makes_it_wait(
    shared_broker: Broker, queenspark: Command, queue: str, messages: Messages, tmp_path: Path, state: Path
) -> None:
    queenspark("queues", "create", queue, "--max-size", "1")
    queenspark("push", queue, "0")
    file = write(tmp_path / "a.jsonl", "1")
    command = [sys.executable, "-m", "queenspark", "import", file, "--queue", queue]
    environment = {**clean_environment(url=shared_broker.url), "XDG_STATE_HOME": str(state)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        queenspark("pop", queue)
        assert process.wait(30) == 0
    assert [message["data"] for message in messages()] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("missing.jsonl",), "missing.jsonl does not exist"),
        ((".",), "Cannot tell the format"),
        ((".", "--format", "csv"), "is a folder"),
        (("a.bin",), "Cannot tell the format from the name a.bin: pass --format"),
        (("-", "--format", "text", "--partition-by", "x"), "has no field x"),
        (("-", "--partition", "a", "--partition-by", "x"), "cannot be combined"),
        (("-", "--format", "parquet"), "Parquet must be read"),
    ],
)
def test_mistakes_get_a_sentence(
    queenspark: Command, queue: str, arguments: tuple[str, ...], says: str
) -> None:
    result = queenspark("import", *arguments, "--queue", queue)
    assert (result.code, result.out) == (2, "")
    assert says in result.err


def test_a_refused_queue_ends_the_import_at_once(queenspark: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", *map(str, range(5000)))
    result = queenspark("import", file, "--queue", "q" * 300, "--on-error", "skip")
    assert result.code == 1
    assert "The broker rejected the request: " in result.err


def test_a_file_that_is_not_gzip_is_reported(queenspark: Command, queue: str, tmp_path: Path) -> None:
    result = queenspark("import", write(tmp_path / "a.jsonl.gz", "1"), "--queue", queue)
    assert (result.code, "Cannot read" in result.err) == (1, True)


def test_json_is_for_programs(queenspark: Command, queue: str, tmp_path: Path) -> None:
    files = [write(tmp_path / name, "1", "2") for name in ("a.jsonl", "b.jsonl")]
    response = queenspark("import", *files, "--queue", queue, "--json").json()
    assert [(one["file"], one["messages"]) for one in response["files"]] == [(name, 2) for name in files]


def test_only_one_import_of_a_file_runs(
    shared_broker: Broker, queenspark: Command, queue: str, tmp_path: Path, state: Path
) -> None:
    queenspark("queues", "create", queue, "--max-size", "1")
    queenspark("push", queue, "0")
    file = write(tmp_path / "a.jsonl", "1")
    command = [sys.executable, "-m", "queenspark", "import", file, "--queue", queue]
    environment = {**clean_environment(url=shared_broker.url), "XDG_STATE_HOME": str(state)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        _wait_for_progress(state, process)
        result = queenspark("import", file, "--queue", queue)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert (result.code, "Another import" in result.err) == (1, True)


def test_the_key_of_the_environment_is_sent(
    command: Command, broker: StartBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = broker(access_control="true")
    _, key = make_key(closed.database_url, "importer", scopes=["queue:orders:push", "queue:orders:read"])
    monkeypatch.setenv("QUEENSPARK_URL", closed.url)
    file = write(tmp_path / "a.jsonl", '{"n": 1}')
    denied = command("import", file, "--queue", "orders", "--on-error", "skip")
    assert denied.code == 1
    assert "QUEENSPARK_API_KEY" in denied.err
    monkeypatch.setenv("QUEENSPARK_API_KEY", key)
    outside = command("import", file, "--queue", "others", "--on-error", "skip")
    assert outside.code == 1
    assert "queue others does not exist" in outside.err
    # No line was skipped.
    done = command("import", file, "--queue", "orders")
    assert done.code == 0, done.err
    with Api(closed.url) as api:
        api.http.headers["X-API-Key"] = key
        (message,) = api.read("/api/v1/messages", queue="orders")["messages"]
    assert message["producerSub"] == "importer"
