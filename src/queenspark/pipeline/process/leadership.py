"""Leader election: exactly one pipeline process, the leader, runs the streams query. Others stand by."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from ... import __version__
from ...store.errors import StoreError
from ...store.pipeline import Leader, PipelineStore

LEASE_SECONDS = 6.0
RENEW_SECONDS = 1.5


class Leadership:
    """The leadership of this process."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store = PipelineStore(url)
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"

    def claim(self) -> Leader:
        """Try to lead; return the current leader."""
        self._store.note_process(self.holder, __version__)
        self._store.end_stuck_pushes(self.holder)
        return self._store.lead(self.holder, LEASE_SECONDS)

    @contextmanager
    def kept(self, epoch: int) -> Iterator[threading.Event]:
        """Renew leadership; the event is set when it is lost or unknown."""
        lost, done = threading.Event(), threading.Event()
        keeper = threading.Thread(target=self._keep, args=(epoch, lost, done), daemon=True)
        keeper.start()
        try:
            yield lost
        finally:
            done.set()
            keeper.join(RENEW_SECONDS)

    def _keep(self, epoch: int, lost: threading.Event, done: threading.Event) -> None:
        failures = 0
        with PipelineStore(self._url) as store:
            while not done.wait(RENEW_SECONDS):
                try:
                    leader = store.lead(self.holder, LEASE_SECONDS)
                    store.note_process(self.holder, __version__)
                    failures = 0
                except StoreError:
                    failures += 1
                    if failures * RENEW_SECONDS < LEASE_SECONDS:
                        continue
                    lost.set()
                    return
                if not leader.is_mine or leader.epoch != epoch:
                    lost.set()
                    return

    def resign(self) -> None:
        """Hand over to a standby at once."""
        with suppress(StoreError):  # the lease expires instead
            self._store.resign(self.holder)
        self._store.close()
