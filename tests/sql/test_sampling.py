"""An undeclared queue has the types that its payloads show."""

import json

from queenspark.sql.payload import Field
from queenspark.sql.sampling import sampled_paths
from queenspark.sql.types import BIGINT, BOOLEAN, DOUBLE, JSON, STRING, decimal
from tests.sql.test_payload import _decode


def test_types_are_those_of_the_values() -> None:
    payloads = [
        '{"id": 1, "price": 2, "ok": true, "mixed": 1, "note": null, "address": {"city": "Rome", "no": 5}}',
        '{"id": 2, "price": 2.5, "mixed": "x", "list": [1, {"a": 2}], "address": {"city": "Oslo"}}',
        '{"big": 9223372036854775808}',
        '{"id": null, "odd name": "x", "object_or_text": {}, "big": 3}',
        '{"object_or_text": "text"}',
        "[1]",
        "not JSON",
    ]
    assert sampled_paths(payloads) == {
        ("id",): BIGINT,
        ("price",): DOUBLE,
        ("ok",): BOOLEAN,
        ("mixed",): STRING,
        ("address",): JSON,
        ("address", "city"): STRING,
        ("address", "no"): BIGINT,
        ("list",): JSON,
        ("big",): decimal(38, 0),
        ("odd name",): STRING,
        ("object_or_text",): STRING,
    }


def test_every_sampled_value_fits_its_type() -> None:
    values = [1, 2.5, "x", True, None, {"a": 1}, [1], 10**30, -(2**63), {"a": "b"}, {"a": {"b": 1}}]
    payloads = [json.dumps({"v": value}) for value in values]
    for size in range(1, len(payloads) + 1):
        for start in range(len(payloads) - size + 1):
            sample = payloads[start : start + size]
            fields = [Field(path, kind) for path, kind in sampled_paths(sample).items()]
            frame = _decode([*sample], *fields)
            assert all(frame[field.error].null_count() == len(sample) for field in fields)
