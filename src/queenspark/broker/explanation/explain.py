"""An explanation: the state of a stream or job, its next window, and why it is not sealed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ...sql import SqlError
from ...store.definitions import Body, spec_of
from ...store.errors import Refused
from ...store.standing import Standing
from ...windows import WindowSpec
from ..broker import Broker
from ..times import iso
from ..window import shown_time
from .case import Case, Reason
from .next_window import NextWindow, next_window
from .reasons import reasons
from .records import OpenRecords, open_records

log = logging.getLogger("queenspark.broker")


async def explain(broker: Broker, standing: Standing) -> dict[str, Any]:
    """Explain why the next window is not sealed yet, as shown by the API."""
    spec = sealing(standing.definition.body)
    reads_outside = standing.definition.body.reads is not None  # the log does not have its records
    opened = None if spec is None or reads_outside else await _opened(broker, standing)
    found = None
    if spec is not None and opened is not None and standing.read_point is not None:
        found = await asyncio.to_thread(
            next_window, standing.definition.body, spec, opened.frame, standing.read_point[2]
        )
    case = Case(standing, spec, opened, found, await broker.store.clock.holder())
    return {
        "version": standing.definition.version,
        "sealed": {
            "windows": standing.windows,
            "lastAt": iso(standing.output.newest_at),
            "watermark": None if standing.watermark_us is None else shown_time(standing.watermark_us),
            "openWindows": standing.open_windows,
        },
        "next": None if found is None else _shown_window(found),
        "reasons": [_shown_reason(reason) for reason in reasons(case)],
    }


async def _opened(broker: Broker, standing: Standing) -> OpenRecords | None:
    """Return the records of open windows; None also if this broker cannot read them."""
    try:
        return await open_records(broker, standing)
    except (Refused, SqlError) as error:  # no key, or an older version than the statement
        log.warning("cannot read the open windows of stream %d: %s", standing.definition.stream_id, error)
        return None


def sealing(body: Body) -> WindowSpec | None:
    """Return the windows of a version, if it has sealed ones."""
    if not body.spec:
        return None
    spec = spec_of(body)
    return None if spec.kind in ("rows", "group") or spec.emission == "changes" else spec


def _shown_window(window: NextWindow) -> dict[str, Any]:
    return {
        "key": window.key,
        "start": shown_time(window.start_us),
        "end": None if window.end_us is None else shown_time(window.end_us),
        "records": window.records,
        "newestTime": shown_time(window.newest_us),
        "sealedAtAbout": None if window.due_us is None else shown_time(window.due_us),
    }


def _shown_reason(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code,
        "text": reason.text,
        "fix": reason.fix,
        "since": iso(reason.since),
        "until": iso(reason.until),
    }
