"""The OpenAPI document, generated from the route table."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import msgspec

from .. import __version__
from .broker import Broker
from .http import Call, Error, Response, Right, Route, json
from .http.response import JSON_LINES

_PARAM = re.compile(r":(\w+)")
_REF = "#/components/schemas/{name}"


def document(routes: list[Route]) -> dict[str, Any]:
    """Describe all routes with their parameters, bodies and responses."""
    schemas = _Schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operations = paths.setdefault(_PARAM.sub(r"{\1}", route.path), {})
        operations[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Queenspark",
            "version": __version__,
            "description": "A partitioned, durable message queue on PostgreSQL.",
            "license": {"name": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas.components},
    }


class _Schemas:
    """The schemas of all request and response types."""

    def __init__(self, routes: list[Route]) -> None:
        taken = [kind for route in routes for kind in (route.query, route.body) if kind is not None]
        responded = [kind for route in routes for kind in route.responses.values() if kind not in (None, str)]
        types = list(dict.fromkeys([*taken, *responded, Error]))
        schemas, self.components = msgspec.json.schema_components(types, ref_template=_REF)
        self._by_type = dict(zip(types, schemas, strict=True))

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type."""
        schema: dict[str, Any] = self._by_type[kind]
        return schema

    def fields(self, kind: type[msgspec.Struct]) -> dict[str, Any]:
        """The schemas of a type's fields."""
        name = self.of(kind)["$ref"].rpartition("/")[2]
        fields: dict[str, Any] = self.components[name]["properties"]
        return fields


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAM.findall(route.path)
    ]
    if route.query is not None:
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": _plain(schema)}
            for name, schema in schemas.fields(route.query).items()
        ]
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{re.sub(r'[^a-zA-Z0-9]+', '_', route.path).strip('_')}",
        "summary": route.summary,
        "parameters": parameters,
        "responses": _responses(route, schemas),
        "x-right": route.right,
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.empty_body,
            "content": {"application/json": {"schema": schemas.of(route.body)}},
        }
    return operation


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    """The responses of a route by status, plus the error common to all routes."""
    responses: dict[str, Any] = {}
    for status, kind in route.responses.items():
        response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        responses[str(status)] = response
        if kind is str:
            response["content"] = {"text/plain": {"schema": {"type": "string"}}}
        elif kind is not None:
            response["content"] = {"application/json": {"schema": schemas.of(kind)}}
    if route.may_send_lines:
        lines = {"schema": {"type": "string", "description": "One JSON line per row, as rows arrive."}}
        responses["200"]["content"][JSON_LINES.decode()] = lines
    error = {"description": "Error", "content": {"application/json": {"schema": schemas.of(Error)}}}
    return {**responses, "4XX": error, "5XX": error}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null: a query parameter is omitted instead."""
    choices = [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]
    if len(choices) == 1:
        return dict(choices[0])
    return {key: value for key, value in schema.items() if key != "default" or value is not None}


def route(routes: list[Route]) -> Route:
    """Return the route that serves the document, which includes this route."""

    async def serve(_: Broker, __: Call) -> Response:
        return response

    own = Route("GET", "/openapi.json", serve, "This document", Right.PUBLIC, {200: dict[str, Any]})
    response = json(document([*routes, own]))
    return own
