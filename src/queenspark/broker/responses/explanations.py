"""Why the next window of a stream or job is not sealed yet."""

from __future__ import annotations

from typing import Literal

import msgspec

Code = Literal[
    "no_pipeline", "pipeline_failing", "not_started", "source_gone", "paused", "failed", "output_full",
    "open_transaction", "safe_time", "behind", "grace", "watermark", "count", "sealing", "nothing_open",
    "no_records", "dead_records", "no_windows", "retention", "finished", "unknown",
]  # fmt: skip


class SealedSoFar(msgspec.Struct, rename="camel"):
    """Number of emitted windows or rows, time of the last one, watermark, and open windows."""

    windows: int
    last_at: str | None
    watermark: str | None
    open_windows: int


class NextWindow(msgspec.Struct, rename="camel"):
    """The open window that ends first; a count window has no `end` and no `sealedAtAbout`."""

    key: str
    start: str
    end: str | None
    records: int
    newest_time: str
    sealed_at_about: str | None


class Reason(msgspec.Struct):
    """A reason with its remedy, its start, and its expected end, if known."""

    code: Code
    text: str
    fix: str
    since: str | None
    until: str | None


class Explanation(msgspec.Struct):
    """The next window, if one is open and known, and the reasons, most likely first."""

    version: int
    sealed: SealedSoFar
    next: NextWindow | None
    reasons: list[Reason]


class StreamExplanation(Explanation):
    """The explanation of a stream."""

    stream: str
    namespace: str


class JobExplanation(Explanation):
    """The explanation of a job."""

    job: str
    namespace: str
