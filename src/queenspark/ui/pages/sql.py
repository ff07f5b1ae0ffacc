"""The SQL console: an editor, query plans, live rows, and a history."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from nicegui import ui

from ...client import QueenError, SqlError
from ...formats.sql_words import dotted_text
from ..components import Table
from ..frame import Frame
from ..parts import box, button, code, error_box, panel
from ..words import plural

_FIRST = """SELECT * FROM clicks EMIT CHANGES LIMIT 20;"""
_MOST_ROWS = 200
_MOST_HISTORY = 30
_MOST_NAMES = 200
_MOST_CHIPS = 40
_SHOW_SECONDS = 0.4
_KEPT = "queenspark-sql-history"  # in the browser
_WORDS = [
    {"label": word, "type": "keyword"}
    for word in (
        "CREATE STREAM",
        "AS SELECT",
        "EMIT CHANGES",
        "EMIT FINAL",
        "WINDOW TUMBLING",
        "WINDOW SLIDING",
        "WINDOW SESSION",
        "GROUP BY",
        "HAVING",
        "INSERT INTO",
        "SHOW JOBS",
        "SHOW STREAMS",
        "DESCRIBE",
        "PAUSE JOB",
        "RESUME JOB",
        "RESTART JOB",
        "DROP STREAM",
        "EXPLAIN",
    )
]


def register() -> None:
    """Register the route."""
    ui.page("/sql")(_page)


async def _page() -> None:
    await _Console().build()


class _Console:
    """One console in one browser."""

    def __init__(self) -> None:
        self.frame = Frame("SQL", "/sql", "Query queues and streams, or create a continuous job.")
        self.queen = self.frame.session.queen
        self.running: asyncio.Task[None] | None = None
        self.history: list[str] = []

    async def build(self) -> None:
        """Make the page."""
        with self.frame.actions:
            self.stop_button = button("Stop", self._stop, kind="bad")
            button("Explain", self._explain)
            button("Run", self._run, kind="main")
        self.stop_button.set_visibility(False)
        with self.frame.body, box("qs-grid side"):
            with box("qs-grid"):
                with panel("Statements", about="Ctrl-Enter runs them, Ctrl-Space completes"):
                    self.editor = self.frame.editor(
                        _FIRST,
                        "PostgreSQL",
                        line_wrapping=True,
                        keymap={"Mod-Enter": lambda _: self._run()},
                    ).style("height: 200px")
                with panel("Result", flush=True):
                    self.result = box().style("padding: 0 0 4px")
                    with self.result:
                        ui.label("Rows appear here as they are computed.").classes("soft").style(
                            "padding: 0 18px 16px"
                        )
            with box("qs-grid"):
                with panel("Plan", about="EXPLAIN"):
                    self.plan = box()
                    with self.plan:
                        ui.label("Explain shows how a statement would run without running it.").classes(
                            "soft"
                        )
                with panel("Queues"):
                    self.names_box = box().style("display: flex; flex-wrap: wrap; gap: 6px")
                with panel("History"):
                    self.history_box = box().style("display: flex; flex-direction: column; gap: 6px")
                    with self.history_box:
                        ui.label("Statements that you run appear here.").classes("soft")

        ui.context.client.on_delete(self._stop)  # a query does not outlive its page
        ui.timer(0.2, self._recall, once=True)
        await self.frame.live("names", lambda _: self._names(), self._show_names, 5.0)

    def _show_names(self, names: list[str]) -> None:
        """List the queues that can be selected from, and let the editor complete their names."""
        self.names_box.clear()
        with self.names_box:
            for name in names[:_MOST_CHIPS]:
                ui.button(name, on_click=partial(self._insert, name), color=None).props(
                    "flat dense no-caps"
                ).classes("qs-badge plain")
            if len(names) > _MOST_CHIPS:
                ui.label("Others are completed in the editor.").classes("soft")
            if not names:
                ui.label("No queues yet. Push a message, or CREATE STREAM.").classes("soft")
        if names and self.editor.value == _FIRST:
            self.editor.value = _FIRST.replace("clicks", dotted_text(names[0]))
        self._complete(names)

    async def _recall(self) -> None:
        """Load the history of this browser."""
        kept = await ui.run_javascript(f"localStorage.getItem({_KEPT!r})")
        with suppress(msgspec.MsgspecError):
            self.history = msgspec.json.decode(kept or "[]", type=list[str])
            self._show_history()

    def _complete(self, names: list[str]) -> None:
        """Let the editor complete queue names and SQL keywords."""
        words = [*({"label": dotted_text(name), "type": "variable"} for name in names), *_WORDS]
        options = msgspec.json.encode(words).decode()
        ui.run_javascript(f"""
            const editor = getElement({self.editor.id});
            await editor.editorPromise;
            const isFirst = !editor.completions;
            editor.completions = {options};
            if (!isFirst) return;
            const {{ EditorState, StateEffect }} = await import("nicegui-codemirror");
            const source = (context) => {{
              const word = context.matchBefore(/[\\w.`-]+/);
              if (!word && !context.explicit) return null;
              // The editor closes a backquote by itself; the name brings its own.
              const next = context.state.sliceDoc(context.pos, context.pos + 1);
              const to = context.pos + (word?.text.startsWith("`") && next === "`" ? 1 : 0);
              return {{ from: word ? word.from : context.pos, to, options: editor.completions }};
            }};
            const found = EditorState.languageData.of(() => [{{ autocomplete: source }}]);
            editor.editor.dispatch({{ effects: StateEffect.appendConfig.of(found) }});
        """)

    async def _names(self) -> list[str]:
        found = await self.queen.admin.request("GET", "resources", "queues", query={"limit": _MOST_NAMES})
        return [queue["name"] for queue in found["queues"]]

    def _insert(self, name: str) -> None:
        self.editor.value = f"{self.editor.value.rstrip()} {dotted_text(name)}".strip()

    async def _explain(self) -> None:
        text = self.editor.value.strip().rstrip(";")
        if not text:
            return
        if not text.upper().startswith("EXPLAIN"):
            text = f"EXPLAIN {text}"
        self.plan.clear()
        try:
            # EXPLAIN applies to the first statement only; in a dry run, others have no effect.
            results = (await self.queen.sql(text, dry_run=True)).results
        except QueenError as error:
            with self.plan:
                error_box(_text_of(error))
            return
        with self.plan:
            if len(results) > 1:
                error_box(
                    f"Explain takes one statement; the editor has {len(results)}. Remove the others."
                    " Nothing was run."
                )
                return
            code("\n".join("  ".join(map(str, row.values())) for row in results[0].rows))

    async def _stop(self) -> None:
        if self.running is not None:
            self.running.cancel()
            await asyncio.wait([self.running])

    async def _run(self) -> None:
        await self._stop()
        text = self.editor.value.strip()
        if not text:
            return
        self._remember(text)
        self.running = asyncio.create_task(self._show(text))

    def _remember(self, text: str) -> None:
        self.history = [text, *(each for each in self.history if each != text)][:_MOST_HISTORY]
        kept = msgspec.json.encode(msgspec.json.encode(self.history).decode()).decode()
        ui.run_javascript(f"localStorage.setItem({_KEPT!r}, {kept})")
        self._show_history()

    def _show_history(self) -> None:
        if not self.history:
            return
        self.history_box.clear()
        with self.history_box:
            for each in self.history:
                line = " ".join(each.split())
                ui.button(
                    line if len(line) < 60 else line[:60] + "…",
                    on_click=lambda each=each: self._again(each),
                    color=None,
                ).props("flat dense no-caps align=left").classes("mono").style("font-size: 12px")

    def _again(self, text: str) -> None:
        self.editor.value = text

    async def _show(self, text: str) -> None:
        self.result.clear()
        self.stop_button.set_visibility(True)
        try:
            found = await self.queen.sql(text)
            if found.results:
                self._show_results(found.results)
            else:
                await self._show_rows(found)
        except QueenError as error:
            with self.result, box().style("padding: 0 18px 12px"):
                error_box(_text_of(error))
        except asyncio.CancelledError:
            if self.result.is_deleted:  # the page was closed
                return
            with self.result:
                ui.label("Stopped.").classes("soft").style("padding: 8px 18px")
        self.stop_button.set_visibility(False)

    def _show_results(self, results: list[Any]) -> None:
        with self.result:
            for result in results:
                if result.columns:
                    _table([column.name for column in result.columns], result.rows)
                else:
                    done = result.kind.replace("_", " ")
                    rows = f": {plural(result.count, 'row')}" if result.count is not None else ""
                    with box().style("padding: 0 18px 12px"):
                        ui.label(f"✓ {done} {result.name or ''}{rows}".strip())
                        for warning in result.warnings:
                            ui.label(warning).classes("soft")

    async def _show_rows(self, found: Any) -> None:
        """Show rows as they arrive, newest first, a few times per second."""
        columns = [column.name for column in found.columns]
        with self.result:
            count = ui.label("Waiting for rows…").classes("soft").style("padding: 0 18px 8px")
            table = Table([{"name": name, "label": name} for name in columns], empty="No rows yet.")
        table.show([])
        rows: list[dict[str, Any]] = []
        seen = 0
        drawing: asyncio.TimerHandle | None = None

        def draw() -> None:
            nonlocal drawing
            drawing = None
            table.show(rows[::-1])
            count.text = f"{plural(seen, 'row')}, newest first" if seen else "No rows."

        async with found:
            try:
                async for row in found:
                    seen += 1
                    rows.append({"id": seen, **{name: _text(row[name]) for name in columns}})
                    del rows[:-_MOST_ROWS]
                    # Later, not now: the rows after this one may come at once, or much later.
                    drawing = drawing or asyncio.get_running_loop().call_later(_SHOW_SECONDS, draw)
            finally:
                if drawing is not None:
                    drawing.cancel()
                if not table.is_deleted:
                    draw()


def _table(columns: list[str], rows: list[dict[str, Any]]) -> None:
    shown = [
        {"id": number, **{name: _text(row[name]) for name in columns}}
        for number, row in enumerate(rows[:_MOST_ROWS])
    ]
    Table([{"name": name, "label": name} for name in columns], empty="No rows.").show(shown)


def _text(value: Any) -> Any:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else str(value)


def _text_of(error: QueenError) -> str:
    if isinstance(error, SqlError) and error.line is not None:
        return f"Line {error.line}, column {error.column}: {error}"
    return str(error)
