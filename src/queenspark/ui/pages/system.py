"""The system: brokers, pipelines, Spark batches, PostgreSQL and settings."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ..components import Chart, Table, badge
from ..frame import Frame
from ..parts import Tiles, box, panel
from ..words import ago, duration, number, size

_BATCHES = (("batch", "accent", "batchSeconds"), ("safe time lag", "wait", "safeTimeLag"))
_ROWS = (("rows per second", "accent", "batchRowsPerSecond"), ("open windows", "wait", "openWindows"))
_MEGABYTE = 1e6


def register() -> None:
    """Register the route."""
    ui.page("/system")(_page)


async def _page() -> None:
    frame = Frame("System", "/system", "Processes, PostgreSQL and settings.")
    queen = frame.session.queen
    with frame.body:
        tiles = Tiles(
            ("Brokers", "Pipelines", "Connections", "Database", "Oldest transaction", "Backpressure")
        )
        with box("qs-grid two"):
            with panel("Brokers", flush=True):
                brokers = Table(_process_columns("address"), empty="No broker has reported itself.")
            with panel("Pipelines", flush=True):
                pipelines = Table(
                    _process_columns("role"),
                    empty="No pipeline is running. Start one with `queenspark pipeline`.",
                )
            with panel("Spark batches", about="seconds, last hour"):
                batches = Chart([{"name": name, "tone": tone} for name, tone, _ in _BATCHES], unit="s")
            with panel("Work", about="last hour"):
                work = Chart([{"name": name, "tone": tone} for name, tone, _ in _ROWS])
            with panel("Spark state", about="last hour"):
                state = Chart([{"name": "size", "tone": "accent"}], unit="MB")
            with panel("PostgreSQL: connections", flush=True):
                connections = Table(
                    [
                        {"name": "application", "label": "Application"},
                        {"name": "connections", "label": "Connections", "align": "right"},
                        {"name": "active", "label": "Active", "align": "right"},
                        {"name": "oldest", "label": "Oldest transaction", "align": "right"},
                    ]
                )
            with panel("PostgreSQL: largest tables", flush=True):
                tables = Table(
                    [
                        {"name": "name", "label": "Table"},
                        {"name": "bytes", "label": "Size", "align": "right"},
                        {"name": "rows", "label": "Rows", "align": "right"},
                        {"name": "dead", "label": "Dead rows", "align": "right"},
                    ]
                )
        ui.element("div").style("height: 16px")
        with panel("Settings", flush=True, about="of the broker that responded; secrets are hidden"):
            settings = Table(
                [
                    {"name": "name", "label": "Setting", "class": "mono"},
                    {"name": "value", "label": "Value", "class": "mono"},
                    {"name": "about", "label": "Description", "class": "wrap"},
                ]
            )

    def show(found: dict[str, Any]) -> None:
        postgres = found["postgres"]
        tiles.show("Brokers", number(len(found["brokers"])))
        leading = sum(each["leading"] for each in found["pipelines"])
        standby = len(found["pipelines"]) - leading
        tiles.show("Pipelines", number(leading), f"leading, {standby} on standby", "" if leading else "bad")
        tiles.show("Connections", number(postgres["connections"]), f"of {postgres['maxConnections']}")
        tiles.show("Database", size(postgres["databaseBytes"]))
        oldest = max((each["oldestTransactionSeconds"] or 0 for each in postgres["applications"]), default=0)
        tiles.show("Oldest transaction", duration(oldest), "", "warn" if oldest > 10 else "")
        brokers.show([{**_process(each), "address": each["address"] or "–"} for each in found["brokers"]])
        pipelines.show(
            [
                {
                    **_process(each),
                    "role": badge("leading", "good") if each["leading"] else badge("standby", "wait"),
                }
                for each in found["pipelines"]
            ]
        )
        connections.show(
            [
                {
                    "id": each["application"],
                    "application": each["application"],
                    "connections": number(each["connections"]),
                    "active": number(each["active"]),
                    "oldest": duration(each["oldestTransactionSeconds"])
                    if each["oldestTransactionSeconds"]
                    else "–",
                }
                for each in postgres["applications"]
            ]
        )
        largest = max((each["bytes"] for each in postgres["tables"]), default=1) or 1
        tables.show(
            [
                {
                    "id": each["name"],
                    "name": each["name"],
                    "bytes": {"text": size(each["bytes"]), "bar": each["bytes"] / largest},
                    "rows": number(each["rows"]),
                    "dead": number(each["deadRows"]),
                }
                for each in postgres["tables"]
            ]
        )
        settings.show(
            [
                {
                    "id": each["name"],
                    "name": each["name"],
                    "value": {"text": _shown(each["value"]), "mono": True, "faint": each["isDefault"]},
                    "about": each["about"],
                }
                for each in found["settings"]
            ]
        )

    def show_series(steps: list[dict[str, Any]]) -> None:
        times = [step["at"] for step in steps]
        batches.show(times, [[step[column] for step in steps] for _, _, column in _BATCHES])
        work.show(times, [[step[column] for step in steps] for _, _, column in _ROWS])
        state.show(times, [[step["stateBytes"] / _MEGABYTE for step in steps]])
        if steps:
            tiles.show("Backpressure", f"{steps[-1]['backpressure']:.2f}")

    await frame.live("system", lambda _: queen.admin.system(), show, 2.0)
    await frame.live("series of an hour", lambda _: queen.admin.series(seconds=3600), show_series, 5.0)


def _process_columns(last: str) -> list[dict[str, Any]]:
    return [
        {"name": "name", "label": "Process"},
        {"name": last, "label": last.capitalize()},
        {"name": "version", "label": "Version"},
        {"name": "started", "label": "Started", "align": "right"},
        {"name": "seen", "label": "Seen", "align": "right"},
    ]


def _process(each: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": each["name"],
        "name": {"text": each["name"].rpartition(":")[0] or each["name"], "hint": each["name"]},
        "version": each["version"],
        "started": ago(each["startedAt"]),
        "seen": ago(each["seenAt"]),
    }


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
