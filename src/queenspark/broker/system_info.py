"""GET /api/v1/series and /api/v1/system: the last hour, and all running processes."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..settings import variable, without_userinfo
from ..store.samples import COUNTED, STEP_SECONDS
from .broker import Broker
from .errors import not_found
from .http import Call, Response, Right, Route, json
from .responses.system import Series, SystemInfo
from .times import iso

_GAUGES = {
    "openWindows": "open_windows",
    "lag": "lag",
    "deadLetters": "dead_letters",
    "safeTimeLag": "safe_time_lag",
    "batchSeconds": "batch_seconds",
    "batchRowsPerSecond": "batch_rows",
    "backpressure": "backpressure",
    "stateBytes": "state_bytes",
}


class SeriesQuery(msgspec.Struct):
    """The time range."""

    seconds: Annotated[int, Meta(ge=10, le=3600)] = 900


async def dashboard(broker: Broker, call: Call) -> Response:
    """Redirect browsers to the dashboard; 404 for other clients."""
    if "text/html" not in call.headers.get("accept", ""):
        raise not_found(f"no such route: {call.url_path}")
    path = "" if call.url_path == "/" else call.url_path
    location = broker.settings.ui_url.rstrip("/") + path
    text = f"The dashboard is at {location}\n".encode()
    return Response(302, text, b"text/plain; charset=utf-8", ((b"location", location.encode()),))


async def series(broker: Broker, call: Call) -> Response:
    """Return rates and gauges of all brokers in five-second steps, oldest first."""
    seconds: int = call.query.seconds
    return json(await broker.cache.get(f"series {seconds}", lambda: _series(broker, seconds)))


async def _series(broker: Broker, seconds: int) -> dict[str, Any]:
    steps = await broker.store.samples.series(seconds + STEP_SECONDS)
    shown = []
    for before, step in pairwise(steps):
        passed = max(STEP_SECONDS, (step["at"] - before["at"]).total_seconds())
        # Deleting a stream decreases the total.
        sealed = max(0, step["sealed_total"] - before["sealed_total"])
        shown.append({
            "at": iso(step["at"]),
            **{f"{name}PerSecond": round(step[name] / STEP_SECONDS, 3) for name in COUNTED},
            "sealedPerSecond": round(sealed / passed, 3),
            **{name: round(float(step[column]), 3) for name, column in _GAUGES.items()},
        })  # fmt: skip
    return {"stepSeconds": STEP_SECONDS, "series": shown}


async def system(broker: Broker, _: Call) -> Response:
    """Return brokers, pipelines, PostgreSQL, and the settings of this broker."""
    found = await broker.cache.get("system", lambda: _system(broker))
    return json({**found, "settings": _settings(broker)})


async def _system(broker: Broker) -> dict[str, Any]:
    server = broker.store.server
    facts = await server.facts()
    pipeline = await broker.store.streams.pipeline()
    processes = await broker.store.samples.processes()
    return {
        "brokers": [_process(row) for row in processes if row["kind"] == "broker"],
        "pipelines": [
            {**_process(row), "leading": pipeline["active"] and row["name"] == pipeline["holder"]}
            for row in processes
            if row["kind"] == "pipeline"
        ],
        "queries": pipeline["queries"] if pipeline["active"] else {},
        "postgres": {
            "version": facts["version"],
            "databaseBytes": facts["database_bytes"],
            "connections": facts["connections"],
            "maxConnections": facts["max_connections"],
            "applications": [
                {
                    "application": row["application"],
                    "connections": row["connections"],
                    "active": row["active"],
                    "oldestTransactionSeconds": row["oldest_transaction_seconds"],
                }
                for row in await server.connections()
            ],
            "tables": [
                {
                    "name": row["name"],
                    "bytes": row["bytes"],
                    "rows": row["rows"],
                    "deadRows": row["dead_rows"],
                }
                for row in await server.tables()
            ],
        },
    }


def _process(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": row["name"],
        "version": row["version"],
        "address": row["address"],
        "startedAt": iso(row["started_at"]),
        "seenAt": iso(row["seen_at"]),
    }


def _settings(broker: Broker) -> list[dict[str, Any]]:
    """The effective settings; secrets show only whether they are set."""
    shown = []
    for item in fields(broker.settings):
        value: Any = getattr(broker.settings, item.name)
        if isinstance(value, Path):
            value = str(value)
        is_set = value is not None
        if not item.repr and is_set:
            value = "set, not shown"
        if isinstance(value, str):
            value = without_userinfo(value)
        shown.append({
            "name": variable(item.name),
            "value": list(value) if isinstance(value, tuple) else value,
            "isDefault": getattr(broker.settings, item.name) == item.default,
            "about": item.metadata["doc"],
        })  # fmt: skip
    return shown


ROUTES = [
    *(
        Route("GET", path, dashboard, "Redirect browsers to the dashboard", Right.PUBLIC, {302: str})
        for path in ("/", "/streams")
    ),
    Route(
        "GET",
        "/api/v1/series",
        series,
        "Rates and gauges of the last hour",
        Right.SYSTEM_READ,
        {200: Series},
        query=SeriesQuery,
    ),
    Route(
        "GET",
        "/api/v1/system",
        system,
        "Brokers, pipelines, PostgreSQL and settings",
        Right.SYSTEM_ADMIN,
        {200: SystemInfo},
    ),
]
