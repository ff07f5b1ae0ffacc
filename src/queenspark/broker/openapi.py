"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .. import __version__
from .broker import Broker
from .http import Answer, Call, Route, json

_PARAM = re.compile(r":(\w+)")
_REF = "#/components/schemas/{name}"


def document(routes: list[Route]) -> dict[str, Any]:
    """All routes with their parameters, bodies and answers."""
    types = sorted(
        {kind for route in routes for kind in (route.body, route.query) if kind},
        key=lambda kind: kind.__name__,
    )
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_PARAM.sub(r"{\1}", route.path), {})[route.method.lower()] = _operation(
            route, by_type, components
        )
    components["Error"] = {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {"type": "string"},
            "code": {"type": "string"},
            "retryable": {"type": "boolean"},
            "requestId": {"type": "string"},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Queenspark",
            "version": __version__,
            "description": "A partitioned, durable message queue on PostgreSQL.",
            "license": {"name": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(route: Route, by_type: dict[type[Any], Any], components: dict[str, Any]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAM.findall(route.path)
    ]
    if route.query is not None:
        fields = components[route.query.__name__]["properties"]
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": _plain(schema)}
            for name, schema in fields.items()
        ]
    error = {
        "description": "Error",
        "content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}},
    }
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{re.sub(r'[^a-zA-Z0-9]+', '_', route.path).strip('_')}",
        "summary": route.summary,
        "parameters": parameters,
        "responses": {str(route.success): {"description": "Success"}, "4XX": error, "5XX": error},
    }
    if route.path.startswith("/api/v1/pop"):
        operation["responses"]["204"] = {"description": "Nothing to hand out"}
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.empty_body,
            "content": {"application/json": {"schema": by_type[route.body]}},
        }
    return operation


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A query parameter is left out rather than null."""
    choices = [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]
    if len(choices) == 1:
        return dict(choices[0])
    return {key: value for key, value in schema.items() if key != "default" or value is not None}


def route(routes: list[Route]) -> Route:
    """The route that serves the document of all routes."""
    text = json(document(routes))

    async def serve(_: Broker, __: Call) -> Answer:
        return text

    return Route("GET", "/openapi.json", serve, "This document")
