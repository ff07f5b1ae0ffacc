"""Finds the job that kills Spark's workers, and disables it, so that the others can continue.

An error of a job is caught, and only that job fails. A worker that dies (out of memory, a crash in native
code) takes the whole query down, and again when the batch is rerun. After the first death workers note
which job they compute; normally none does. A job that was noted when two workers died is marked as failed.
"""

from __future__ import annotations

import logging
import time
from collections import Counter

import msgspec

from ...store.pipeline import PipelineStore
from ...store.progress import Stream, name_of
from .definitions import Definitions

log = logging.getLogger("queenspark.pipeline")

DEATHS = 2
"""Worker deaths during a job before it is disabled."""
_SECONDS = 300.0  # after a death
#: How Spark and other workers report the death of a worker.
_DIED = ("Python worker exited unexpectedly", "WorkerDied")


class Care(msgspec.Struct, frozen=True):
    """The precautions of a run of the query."""

    #: Workers note which job they compute until this time, in seconds since 1970.
    until: float = 0.0
    #: Disabled jobs, by "id:version": the seq from which they are disabled, and why.
    disabled: dict[str, tuple[int, str]] = {}

    @property
    def is_on(self) -> bool:
        """Whether workers note which job they compute."""
        return time.time() < self.until

    def failures(self, definitions: Definitions) -> dict[Stream, str]:
        """Return the disabled jobs, with the reason. A restarted one is tried again."""
        if not self.disabled:
            return {}
        return {
            stream: self.disabled[name][1]
            for stream, row in definitions.by_stream.items()
            if (name := name_of(stream)) in self.disabled and row.seq <= self.disabled[name][0]
        }


class Coroner:
    """Determines the precautions of each run from the failure of the previous one."""

    def __init__(self, store: PipelineStore) -> None:
        self._store = store
        self._deaths: Counter[Stream] = Counter()
        self._care = Care()

    def care(self, failure: str | None) -> Care:
        """Return the precautions for the next run; `failure` is why the last one ended."""
        noted = self._store.take_steps()
        if failure is None or not any(text in failure for text in _DIED):
            return self._care
        self._deaths.update(noted)
        seq = self._store.latest_seq()
        disabled = dict(self._care.disabled)
        for stream in noted:
            log.warning("a worker died while computing job %s, version %d", *stream)
            if self._deaths[stream] >= DEATHS:
                del self._deaths[stream]
                reason = (
                    f"{DEATHS} Spark workers died while computing this job, so it is disabled: it runs out of"
                    " memory or crashes; change it with CREATE OR REPLACE, or retry it with RESTART JOB"
                )
                disabled[name_of(stream)] = (seq, reason)
        self._care = Care(time.time() + _SECONDS, disabled)
        return self._care
