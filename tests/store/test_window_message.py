"""The window message: written by the sink, read by Python and by SQL, and by versions before and after."""

import json

import polars as pl
import pytest

from queenspark.formats.window_message import Range, decode, is_same, payload
from tests.store.desk import Desk
from tests.streams.sealing import MINUTE, Sealed, frame

WINDOW = Sealed("k", 0, MINUTE, [(3, (5, 6), (7, 8)), (4, (1, 2), (3, 4))], 9, 2, 3, ["x"])


def written(window: Sealed = WINDOW) -> str:
    rows = frame(7, 1, [window])
    return str(rows.select(payload(rows.columns)).item())


def test_a_message_survives_a_round_trip() -> None:
    message = decode(written())
    assert (message.id, message.stream, message.version, message.key) == ("7:k:0:60000:v3", 7, 3, "k")
    assert (message.start, message.end, message.count, message.revision) == (0, MINUTE, 9, 2)
    assert message.sources == [Range(3, 5, 6, 7, 8), Range(4, 1, 2, 3, 4)]
    assert message.replaces == ["x"]


def test_a_field_without_a_column_takes_its_default() -> None:
    rows = frame(7, 1, [WINDOW]).drop("replaces")
    text = rows.select(payload(rows.columns)).item()
    assert "replaces" not in json.loads(text)
    assert decode(text).replaces == []


def test_fields_of_a_newer_version_are_ignored() -> None:
    message = {**json.loads(written()), "headers": {"a": 1}}
    assert decode(json.dumps(message)) == decode(written())


def test_messages_of_other_versions_say_the_same_of_a_window() -> None:
    newer = json.dumps({**json.loads(written()), "headers": None})
    assert is_same(written(), newer)
    assert not is_same(written(Sealed("k", 0, MINUTE, count=9)), newer)
    assert not is_same(written(), json.dumps({**json.loads(written()), "count": 8}))


@pytest.mark.anyio
async def test_sql_reads_messages_written_by_python(desk: Desk) -> None:
    with desk.connect() as connection:
        connection.execute(f"SET search_path = {functions(desk)}")
        found = connection.execute("SELECT * FROM window_sources(%s)", (written(),)).fetchall()
        assert [Range(*row) for row in found] == decode(written()).sources
        assert connection.execute("SELECT window_version(%s)", (written(),)).fetchone() == (3,)


def functions(desk: Desk) -> str:
    """The schema with the functions of this version."""
    ((name,),) = desk.run("SELECT name FROM queenspark.function_sets ORDER BY installed_at DESC LIMIT 1")
    return str(name)


def test_empty_windows_have_no_sources() -> None:
    rows = frame(7, 1, [Sealed("k", 0, MINUTE, count=0)])
    assert isinstance(rows, pl.DataFrame)
    assert decode(rows.select(payload(rows.columns)).item()).sources == []
