"""The pipeline of `queenspark up`: started again when it ends."""

import time

from queenspark.cli.child_process import ChildProcess
from queenspark.settings import Settings

STOP_SECONDS = 20.0
PAUSE_SECONDS = 2.0


class PipelineProcess(ChildProcess):
    """`queenspark pipeline`."""

    def __init__(self, settings: Settings, database_url: str) -> None:
        super().__init__(
            "pipeline",
            settings,
            STOP_SECONDS,
            database_url=database_url,
            data_dir=settings.data_dir.absolute(),
        )
        self._again_at: float | None = None

    def look(self) -> None:
        """Start it again some time after it has ended."""
        if self.running:
            return
        now = time.monotonic()
        if self._again_at is None:
            self._again_at = now + PAUSE_SECONDS
        elif now >= self._again_at:
            self._again_at = None
            self.spawn()
