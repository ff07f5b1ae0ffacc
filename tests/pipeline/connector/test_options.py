"""Options of the data source are checked, and a refusal names the option and the fix."""

from datetime import UTC, datetime

import pytest
from pyspark.sql.types import IntegerType, StringType, StructType

from queenspark.pipeline.connector.items import check_schema
from queenspark.pipeline.connector.options import ReadOptions, WriteOptions
from queenspark.pipeline.errors import OptionError

READ = {"url": "postgresql:///q", "queue": "orders"}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUEENSPARK_DATABASE_URL", raising=False)


def test_only_the_queue_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEENSPARK_DATABASE_URL", "postgresql:///default")
    options = ReadOptions.parse({"queue": "orders"})
    assert (options.url, options.queues, options.start, options.max_rows) == (
        "postgresql:///default", ("orders",), "earliest", None,
    )  # fmt: skip


def test_capitals_do_not_matter_in_names_of_options() -> None:
    assert ReadOptions.parse(READ | {"MaxRowsPerTRIGGER": "7"}).max_rows == 7


def test_several_queues_are_separated_by_commas() -> None:
    assert ReadOptions.parse({"url": "x", "queues": "a, b,a"}).queues == ("a", "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Latest", "latest"),
        ("2026-05-01T12:00:00Z", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("2026-05-01T14:00:00+02:00", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
    ],
)
def test_a_start_is_a_word_or_a_time_in_utc(text: str, expected: str | datetime) -> None:
    assert ReadOptions.parse(READ | {"start": text}).start == expected


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"queue": "q"}, "option url is missing: .* QUEENSPARK_DATABASE_URL"),
        ({"url": "x"}, "option queue is missing: set queue to one name"),
        ({"url": "x", "queue": "a", "queues": "b"}, "both options queue and queues"),
        ({"url": "x", "queues": "a,,b"}, "option queues: a name must not be empty"),
        (READ | {"start": "yesterday"}, "option start is 'yesterday': use earliest, latest or a time"),
        (READ | {"maxRowsPerTrigger": "0"}, "option maxRowsPerTrigger is '0': use a whole number"),
        (READ | {"maxRowsPerTrigger": "many"}, "option maxRowsPerTrigger is 'many'"),
        (READ | {"maxRows": "5"}, "unknown option maxRows: did you mean maxRowsPerTrigger"),
        (READ | {"colour": "red"}, "unknown option colour: use one of url, queue"),
    ],
)
def test_a_wrong_option_of_a_read_is_named_with_the_fix(options: dict[str, str], fix: str) -> None:
    with pytest.raises(OptionError, match=fix):
        ReadOptions.parse(options)


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"url": "x"}, "option queue must not be empty: set it to the name of the queue"),
        ({"url": "x", "queue": "windows:a/b"}, "belong to streams; choose another name"),
        ({"url": "x", "queue": "q", "partition": "p"}, "unknown option partition"),
        ({"queue": "q"}, "option url is missing"),
    ],
)
def test_a_wrong_option_of_a_write_is_named_with_the_fix(options: dict[str, str], fix: str) -> None:
    with pytest.raises(OptionError, match=fix):
        WriteOptions.parse(options)


@pytest.mark.parametrize(
    ("schema", "fix"),
    [
        (StructType().add("value", StringType()), r"column data is missing: make one, such as to_json"),
        (StructType().add("data", IntegerType()), "column data is of type int: use JSON text, a struct"),
        (StructType().add("data", StringType()).add("key", StringType()), "unknown column key"),
        (StructType().add("data", StringType()).add("partition", IntegerType()), "cast it to string"),
    ],
)
def test_a_wrong_column_is_named_with_the_fix(schema: StructType, fix: str) -> None:
    with pytest.raises(OptionError, match=fix):
        check_schema(schema)
