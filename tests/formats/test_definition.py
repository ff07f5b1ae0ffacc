"""The definition of a stream: every field has a name in every interface, and its units fit."""

import msgspec
import pytest

from queenspark.formats.definition import (
    FIELDS,
    StreamDefinition,
    in_words_of_the_wire,
    shape,
    shown,
    to_spec,
    to_wire,
)
from queenspark.store.definitions import Body
from queenspark.store.streams import Stream
from queenspark.windows import WindowSpec

KEPT = {"spec": WindowSpec, "body": Body, "stream": Stream}
DEFINITION = StreamDefinition(
    "s", "ns", ["q"], True, "sliding", window_duration_ms=60_000, window_slide_ms=1500, late="drop"
)


def body(**more: object) -> Body:
    given = {"name": "s", "namespace": "ns", "partitioned": True, "spec": {}, "event_time": None}
    return msgspec.convert({**given, "sources": (), **more}, Body)


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
def test_every_field_is_kept_somewhere(field: object) -> None:
    (field,) = [each for each in FIELDS.values() if each is field]
    if field.storage != "request":
        assert field.kept in KEPT[field.storage].__struct_fields__


def test_every_field_of_a_request_is_in_the_table() -> None:
    assert [field.wire for field in FIELDS.values()] == list(StreamDefinition.__struct_fields__)


def test_times_are_milliseconds_on_the_wire_and_microseconds_in_the_spec() -> None:
    assert to_spec(DEFINITION) == {
        "kind": "sliding", "duration_us": 60_000_000, "slide_us": 1_500_000, "grace_us": 30_000_000,
        "late": "drop", "emit_empty": False,
    }  # fmt: skip


def test_a_definition_is_shown_as_requested() -> None:
    spec = WindowSpec(**to_spec(DEFINITION))
    stream = msgspec.convert(
        {
            "id": 1, "namespace": "ns", "name": "s", "queue_id": 2, "queue": "windows:ns/s",
            "partitioned": True, "lease_timeout_ms": 60_000, "version": 1, "window_retention_ms": 5000,
            "created_at": "2026-01-31T00:00:00Z", "updated_at": "2026-01-31T00:00:00Z",
        },
        Stream,
    )  # fmt: skip
    assert shown(spec, body(), stream) == {
        "partitioned": True, "ordered": True, "windowType": "sliding", "windowDurationMs": 60_000,
        "windowSlideMs": 1500,
        "windowGapMs": None, "windowSizeCount": None, "windowSlideCount": None, "windowGracePeriodMs": 30_000,
        "windowLeaseTimeoutMs": 60_000, "windowRetentionMs": 5000, "eventTime": None, "late": "drop",
        "idleTimeoutMs": None, "emitEmpty": False, "columns": {}, "key": (), "where": None, "aggregates": {},
        "having": None, "emit": "final",
    }  # fmt: skip


def test_values_by_name_become_fields_of_the_wire() -> None:
    assert to_wire({"kind": "count", "size": 5, "step": None}) == {
        "window_type": "count",
        "window_size_count": 5,
    }
    with pytest.raises(KeyError):
        to_wire({"length": 5})


def test_a_version_is_made_by_its_shape() -> None:
    before = shape({"kind": "tumbling", "duration_us": 5, "late": "drop"}, body())
    assert before == shape({"kind": "tumbling", "duration_us": 5, "grace_us": 9}, body())
    assert before != shape({"kind": "tumbling", "duration_us": 6}, body())
    assert before != shape({"kind": "tumbling", "duration_us": 5}, body(partitioned=False))
    assert before != shape({"kind": "tumbling", "duration_us": 5}, body(event_time="at"))
    assert before != shape({"kind": "tumbling", "duration_us": 5, "emission": "changes"}, body())
    for computed in (
        {"columns": {"a": "b"}}, {"key": ["a"]}, {"where": "a"}, {"aggregates": {"n": "COUNT(*)"}},
        {"having": "n > 1"},
    ):  # fmt: skip
        assert before != shape({"kind": "tumbling", "duration_us": 5}, body(**computed))


@pytest.mark.parametrize(
    "more",
    [{"columns": {"a": "b"}}, {"key": ["a"]}, {"where": "a"}, {"aggregates": {"n": "COUNT(*)"}},
     {"having": "n > 1"}, {"emit": "changes"}, {"window_type": "rows"}],
    ids=lambda more: next(iter(more)),
)  # fmt: skip
def test_a_stream_with_expressions_computes(more: dict[str, object]) -> None:
    given = {"name": "s", "namespace": "ns", "source_queue_names": ["q"], "emit": "final"}
    assert not msgspec.convert(given, StreamDefinition).computes
    assert msgspec.convert({**given, **more}, StreamDefinition).computes


def test_errors_of_the_spec_speak_of_the_wire() -> None:
    reason = "slide_us (90000000) must not exceed duration_us (60000000)"
    assert in_words_of_the_wire(reason) == (
        "window_slide_ms (90000) must not exceed window_duration_ms (60000)"
    )
    assert in_words_of_the_wire("step (5000) must not exceed size (4000)") == (
        "window_slide_count (5000) must not exceed window_size_count (4000)"
    )
