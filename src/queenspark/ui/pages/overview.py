"""The overview: current rates, and a list of problems."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ..components import Chart
from ..frame import Frame
from ..parts import Tiles, box, panel, queue_url, stream_url, url
from ..words import ago, duration, number, rate

_RATES = (
    ("pushed", "accent", "pushedPerSecond"),
    ("popped", "wait", "poppedPerSecond"),
    ("acked", "good", "ackedPerSecond"),
)
_WINDOWS = (("sealed", "accent", "sealedPerSecond"), ("delivered", "good", "deliveredPerSecond"))
_LAG = (("unacked", "accent", "lag"), ("dead letters", "bad", "deadLetters"))
_CLOCK = (("safe time lag", "accent", "safeTimeLag"), ("Spark batch", "wait", "batchSeconds"))
_SIGNS = {"error": "◆", "warning": "▲", "notice": "●"}


def register() -> None:
    """Register the route."""
    ui.page("/")(_page)


async def _page() -> None:
    frame = Frame("Overview", "/", "Throughput, lag and problems, live.")
    queen = frame.session.queen
    with frame.body:
        tiles = Tiles(
            (
                "Pushed",
                "Acked",
                "Windows sealed",
                "Open windows",
                "Unacked",
                "Safe time",
                "Backpressure",
                "Dead letters",
            )
        )
        with box("qs-grid side first-last"):
            with box("qs-grid") as charted:
                charts = [
                    _chart("Messages", "per second, last 15 minutes", _RATES, "/s"),
                    _chart("Windows", "per second", _WINDOWS, "/s"),
                ]
                with box("qs-grid two"):
                    charts.append(_chart("Lag", "messages and windows", _LAG, ""))
                    charts.append(_chart("Delay", "seconds", _CLOCK, "s"))
            with box("qs-grid"):
                with panel("Needs attention"):
                    attention = box("qs-attention")
                with panel("Running") as running_panel:
                    running = box()

    def show_series(steps: list[dict[str, Any]]) -> None:
        times = [step["at"] for step in steps]
        for chart, names in charts:
            chart.show(times, [[step[name] for step in steps] for name in names])
        if not steps:
            return
        now = steps[-1]
        tiles.show("Pushed", rate(now["pushedPerSecond"]), "/s")
        tiles.show("Acked", rate(now["ackedPerSecond"]), "/s")
        tiles.show("Windows sealed", rate(now["sealedPerSecond"]), "/s")
        tiles.show("Open windows", number(now["openWindows"]))
        tiles.show("Unacked", number(now["lag"]))
        late = now["safeTimeLag"]
        tiles.show("Safe time", duration(late), "behind", "warn" if late > 10 else "")
        pressure = now["backpressure"]
        tiles.show("Backpressure", f"{pressure:.2f}", "", "warn" if pressure > 1 else "")
        tiles.show("Dead letters", number(now["deadLetters"]), "", "bad" if now["deadLetters"] else "")

    def show_attention(items: list[dict[str, Any]]) -> None:
        attention.clear()
        with attention:
            for item in items[:12]:
                with ui.link(target=_target(item)):
                    ui.html(f'<i class="{item["severity"]}">{_SIGNS[item["severity"]]}</i>', sanitize=False)
                    with ui.element("span"):
                        ui.label(item["text"])
                    with ui.element("em"):
                        ui.label(ago(item["since"]) if item["since"] else "")
            if not items:
                with box("qs-calm"):
                    ui.label("No problems.")

    def show_running(found: dict[str, Any]) -> None:
        running.clear()
        leading = [each for each in found["pipelines"] if each["leading"]]
        standing = len(found["pipelines"]) - len(leading)
        with running, ui.element("dl").classes("qs-facts"):
            for name, value in (
                ("Brokers", ", ".join(each["address"] or each["name"] for each in found["brokers"]) or "–"),
                ("Pipeline", leading[0]["name"].rpartition(":")[0] if leading else "none is leading"),
                ("Standbys", str(standing)),
                (
                    "PostgreSQL",
                    f"{found['postgres']['version']}, {found['postgres']['connections']} connections",
                ),
            ):
                with ui.element("dt"):
                    ui.label(name)
                with ui.element("dd"):
                    ui.label(value)

    if frame.session.can("system:read"):
        await frame.live("series", lambda _: queen.admin.series(), show_series)
    else:
        charted.set_visibility(False)
        tiles.hide()
    await frame.live("attention", lambda _: queen.admin.attention(), show_attention, 2.0)
    if frame.session.can("system:admin"):
        await frame.live("system", lambda _: queen.admin.system(), show_running, 5.0)
    else:
        running_panel.set_visibility(False)


def _chart(
    title: str, about: str, lines: tuple[tuple[str, str, str], ...], unit: str
) -> tuple[Chart, list[str]]:
    with panel(title, about=about):
        made = Chart([{"name": name, "tone": tone} for name, tone, _ in lines], unit=unit)
    return made, [column for _, _, column in lines]


def _target(item: dict[str, Any]) -> str:
    match item["kind"]:
        case "stream":
            return stream_url(item["name"], item["namespace"])
        case "queue":
            return queue_url(item["name"])
        case "job":
            return url("/job", name=item["name"])
        case "dlq":
            return "/dead-letters"
        case _:
            return "/system"
