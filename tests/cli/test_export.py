"""`queenspark export`."""

import csv
import gzip
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.broker_process import Broker, clean_environment
from tests.command import Command


@pytest.fixture
def filled(queenspark: Command, queue: str) -> str:
    """A queue with three objects."""
    for number, partition in ((1, "a"), (2, "b"), (3, "a")):
        payload = f'{{"n": {number}.50, "name": "x,{number}", "more": [1]}}'
        queenspark("push", queue, payload, "--partition", partition)
    return queue


def test_payloads_are_lines_with_all_their_digits(queenspark: Command, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    result = queenspark("export", filled, "--to", str(file))
    assert (result.code, result.out) == (0, "")
    assert f"Exported 3 messages of {filled}" in result.err
    assert [line.replace(" ", "")[:9] for line in file.read_text().splitlines()] == [
        '{"n":1.50', '{"n":2.50', '{"n":3.50',
    ]  # fmt: skip


def test_consumers_notice_nothing(queenspark: Command, filled: str, tmp_path: Path) -> None:
    queenspark("export", filled, "--to", str(tmp_path / "out.jsonl"))
    assert filled not in queenspark("groups", "list", "--limit", "1000").out
    assert len(queenspark("pop", filled, "--batch", "9", "--json").json_lines()) == 3


def test_csv_takes_its_columns_from_the_messages(queenspark: Command, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    assert queenspark("export", filled, "--to", str(file)).code == 0
    with file.open(newline="") as lines:
        assert list(csv.reader(lines)) == [
            ["n", "name", "more"], ["1.50", "x,1", "[1]"], ["2.50", "x,2", "[1]"], ["3.50", "x,3", "[1]"],
        ]  # fmt: skip


def test_csv_with_chosen_columns(queenspark: Command, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    assert queenspark("export", filled, "--to", str(file), "--columns", "name, other").code == 0
    assert file.read_text().splitlines() == ["name,other", '"x,1",', '"x,2",', '"x,3",']


@pytest.mark.parametrize(("payload", "says"), [('{"z": 1}', "has the field z"), ("7", "is not an object")])
def test_csv_loses_no_field_silently(
    queenspark: Command, filled: str, tmp_path: Path, payload: str, says: str
) -> None:
    file = tmp_path / "out.csv"
    queenspark("export", filled, "--to", str(file))
    queenspark("push", filled, payload)
    result = queenspark("export", filled, "--to", str(file))
    assert (result.code, says in result.err) == (1, True)
    assert len(file.read_text().splitlines()) == 4


def test_whole_messages(queenspark: Command, queue: str, tmp_path: Path) -> None:
    queenspark("push", queue, "7", "--partition", "p", "--transaction-id", "t", "--header", "a=b")
    result = queenspark("export", queue, "--to", "-", "--full")
    (message,) = result.json_lines()
    assert message.pop("createdAt").endswith("Z")
    assert message == {"partition": "p", "transactionId": "t", "headers": {"a": "b"}, "data": 7}
    file = tmp_path / "out.csv"
    queenspark("export", queue, "--to", str(file), "--full")
    assert file.read_text().startswith("partition,transactionId,createdAt,headers,data\np,t,")


def test_parquet(queenspark: Command, filled: str, tmp_path: Path) -> None:
    import polars as pl

    file = tmp_path / "out.parquet"
    assert queenspark("export", filled, "--to", str(file)).code == 0
    assert pl.read_parquet(file)["n"].to_list() == [1.5, 2.5, 3.5]
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_a_second_run_appends_new_messages(queenspark: Command, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl.gz"
    for expected in (3, 3, 4):
        if expected == 4:
            queenspark("push", filled, '{"n": 4}')
        assert queenspark("export", filled, "--to", str(file)).code == 0
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        assert len(lines) == expected


def test_a_partial_write_is_truncated_after_a_crash(queenspark: Command, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    queenspark("export", filled, "--to", str(file))
    whole = file.read_text()
    file.write_text(whole + '{"half')
    queenspark("export", filled, "--to", str(file))
    assert file.read_text() == whole
    file.write_text("")
    result = queenspark("export", filled, "--to", str(file))
    assert (result.code, "is shorter" in result.err) == (1, True)


def test_a_file_that_is_there_is_not_overwritten(queenspark: Command, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("mine\n")
    result = queenspark("export", filled, "--to", str(file))
    assert (result.code, "already exists" in result.err) == (2, True)
    assert queenspark("export", filled, "--to", str(file), "--overwrite").code == 0
    assert len(file.read_text().splitlines()) == 3
    result = queenspark("export", filled, "--to", str(file), "--full")
    assert (result.code, "other options" in result.err) == (2, True)


def test_a_missing_folder_is_reported(queenspark: Command, filled: str, tmp_path: Path) -> None:
    result = queenspark("export", filled, "--to", str(tmp_path / "no" / "out.jsonl"))
    assert (result.code, "Cannot write" in result.err) == (1, True)


def test_an_empty_queue_gives_an_empty_file_that_grows(
    queenspark: Command, queue: str, tmp_path: Path
) -> None:
    queenspark("queues", "create", queue)
    file = tmp_path / "out.jsonl"
    assert queenspark("export", queue, "--to", str(file)).code == 0
    queenspark("push", queue, "1")
    assert queenspark("export", queue, "--to", str(file)).code == 0
    assert file.read_text() == "1\n"


def test_a_partition_and_a_time(queenspark: Command, filled: str) -> None:
    lines = queenspark("export", filled, "--to", "-", "--partition", "a").json_lines()
    assert [line["n"] for line in lines] == [1.5, 3.5]
    assert queenspark("export", filled, "--to", "-", "--from", "2100-01-01").out == ""


def test_a_recreated_queue_is_not_taken_for_the_same(
    queenspark: Command, filled: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    queenspark("export", filled, "--to", str(file))
    queenspark("queues", "delete", filled, "--yes")
    queenspark("push", filled, "1")
    result = queenspark("export", filled, "--to", str(file))
    assert (result.code, "recreated" in result.err) == (1, True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_resumes_without_loss_or_duplicates(
    shared_broker: Broker, queenspark: Command, queue: str, tmp_path: Path, how: signal.Signals
) -> None:
    count = 20_000
    queenspark(
        "push", queue, "-", "--batch-size", "5000", stdin="".join(f"{n}\n" for n in range(count)).encode()
    )
    file = tmp_path / "out.jsonl"
    arguments = ["export", queue, "--to", str(file)]
    interrupted = 0
    for _ in range(3):
        command = [sys.executable, "-m", "queenspark", *arguments]
        size = file.stat().st_size if file.exists() else 0
        with subprocess.Popen(
            command, env=clean_environment(url=shared_broker.url), stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and (not file.exists() or file.stat().st_size == size):
                time.sleep(0.002)
            process.send_signal(how)
            code = process.wait(30)
        interrupted += code != 0
        if code == 0:
            break
    assert interrupted > 0
    assert queenspark(*arguments).code == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == list(range(count))


def test_it_follows_until_ctrl_c(
    shared_broker: Broker, queenspark: Command, filled: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "queenspark", "export", filled, "--to", str(file), "--follow"]
    with subprocess.Popen(
        command, env=clean_environment(url=shared_broker.url), stderr=subprocess.DEVNULL
    ) as process:
        for expected in (3, 4):
            while not file.exists() or len(file.read_text().splitlines()) < expected:
                assert process.poll() is None
                time.sleep(0.02)
            queenspark("push", filled, "4")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("no such queue", "--to", "a.jsonl"), 1, "does not exist"),
        (("q", "--to", "a.bin"), 2, "Cannot tell the format"),
        (("q", "--to", "-", "--format", "parquet"), 2, "Parquet needs an output file"),
        (("q", "--to", "a.jsonl", "--columns", "a"), 2, "--columns requires CSV"),
        (("q", "--to", "a.jsonl", "--from", "x"), 2, "Invalid time"),
    ],
)
def test_mistakes_get_a_sentence(
    queenspark: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...], code: int, says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    result = queenspark("export", *arguments)
    assert (result.code, result.out) == (code, "")
    assert says in result.err
