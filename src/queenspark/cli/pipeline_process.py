"""The pipeline of `queenspark up`."""

from queenspark.cli.child_process import ChildProcess
from queenspark.settings import Settings

STOP_SECONDS = 20.0


class PipelineProcess(ChildProcess):
    """`queenspark pipeline`."""

    name = "The pipeline"
    back = "running again; Spark needs a few seconds to start"
    steady_seconds = 30.0  # Spark takes a while to fail, too

    def __init__(self, settings: Settings, database_url: str) -> None:
        super().__init__(
            "pipeline",
            settings,
            STOP_SECONDS,
            database_url=database_url,
            data_dir=settings.data_dir.absolute(),
        )
