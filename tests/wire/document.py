"""The OpenAPI document as a judge of real responses."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import jsonschema_rs

Schema = dict[str, Any]

_REF = "#/components/schemas/"


class Field(NamedTuple):
    """A field of a schema of the document."""

    schema: str
    name: str


class Document:
    """Compares responses with the document, taken literally: an object has only the listed fields."""

    def __init__(self, document: Schema) -> None:
        self._components: Schema = _closed(document["components"]["schemas"])
        self._operations = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "/?"), method.upper(), operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        # A path without parameters wins over one with them, as it does in the broker.
        self._operations.sort(key=lambda each: each[0].pattern.count("[^/]+"))
        self._validators: dict[str, jsonschema_rs.Validator] = {}
        self.seen_statuses: set[tuple[str, str]] = set()
        self.seen_fields: set[Field] = set()

    def check(self, response: httpx2.Response) -> None:
        """Fail if a response differs from the document."""
        if response.headers.get("content-type") != "application/x-ndjson":  # which has no end yet
            response.read()
        request = response.request
        call = f"{request.method} {request.url.path} {response.status_code}"
        path = request.url.raw_path.decode().partition("?")[0]
        found = [
            operation
            for pattern, method, operation in self._operations
            if method == request.method and pattern.fullmatch(path)
        ]
        if request.method in ("HEAD", "OPTIONS") or (not found and response.status_code in (404, 405)):
            return
        assert found, f"{call} is not in the document"
        operation = found[0]
        status = str(response.status_code)
        responses = operation["responses"]
        documented = status if status in responses else f"{status[0]}XX"
        assert documented in responses, f"{call} is not in the document"
        self.seen_statuses.add((operation["operationId"], documented))
        content = responses[documented].get("content")
        if content is None:
            assert response.content == b"", f"{call} has a body that is not in the document"
            return
        kind = response.headers["content-type"].partition(";")[0]
        assert kind in content, f"{call} is {response.headers['content-type']}"
        body = content[kind]
        if kind == "application/json":
            value, schema = response.json(), body["schema"]
            fault = next(self._validator(schema).iter_errors(value), None)
            assert fault is None, f"{call}: {fault}\n{response.text}"
            self.seen_fields |= set(self._fields_in(schema, value))

    def statuses(self) -> set[tuple[str, str]]:
        """Every response of every operation, except general errors."""
        return {
            (operation["operationId"], status)
            for _, _, operation in self._operations
            for status in operation["responses"]
            if not status.endswith("XX")
        }

    def fields(self) -> set[Field]:
        """Every field of the documented responses."""
        found: set[Field] = set()
        for _, _, operation in self._operations:
            for response in operation["responses"].values():
                for body in response.get("content", {}).values():
                    self._collect(body["schema"], found)
        return found

    def _collect(self, schema: Any, found: set[Field]) -> None:
        name = schema.get("$ref", "").removeprefix(_REF)
        if name and not any(field.schema == name for field in found):
            properties = self._components[name].get("properties", {})
            found |= {Field(name, each) for each in properties}
            for each in properties.values():
                self._collect(each, found)
        for each in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
            self._collect(each, found)

    def _fields_in(self, schema: Schema, value: Any) -> Iterator[Field]:
        """The fields of the document that a valid value has."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(_REF)
            for key, part in value.items():
                yield Field(name, key)
                yield from self._fields_in(self._components[name]["properties"][key], part)
        elif "anyOf" in schema:
            for choice in schema["anyOf"]:
                if self._validator(choice).is_valid(value):
                    yield from self._fields_in(choice, value)
        elif "items" in schema:
            for part in value:
                yield from self._fields_in(schema["items"], part)

    def _validator(self, schema: Schema) -> jsonschema_rs.Validator:
        key = repr(schema)
        if key not in self._validators:
            whole = {**schema, "components": {"schemas": self._components}}
            self._validators[key] = jsonschema_rs.validator_for(whole)
        return self._validators[key]


def _closed(value: Any) -> Any:
    """A schema whose objects have only the listed fields."""
    if isinstance(value, dict):
        closed = {key: _closed(part) for key, part in value.items()}
        if isinstance(value.get("properties"), dict):
            closed.setdefault("additionalProperties", False)
        return closed
    return [_closed(part) for part in value] if isinstance(value, list) else value
