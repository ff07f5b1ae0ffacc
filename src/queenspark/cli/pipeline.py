"""`queenspark pipeline`: Spark, which computes windows and SQL jobs."""

import logging
import os
from typing import Annotated

import typer

from queenspark.cli.exits import Failure
from queenspark.cli.parent import ExitWithParent, stop_with_parent
from queenspark.cli.serve import DatabaseUrl, require_database
from queenspark.cli.server_extra import require_server
from queenspark.settings import Settings
from queenspark.signals import on_stop


def pipeline(
    database_url: DatabaseUrl = None,
    master: Annotated[
        str | None,
        typer.Option("--master", help="Spark master (default: local[*], this machine)."),
    ] = None,
    exit_with_parent: ExitWithParent = False,
) -> None:
    """Run the pipeline: the Spark process that computes windows and SQL jobs.

    One pipeline leads; others stand by and take over when it dies. SIGTERM stops it.
    """
    require_server()
    from queenspark.pipeline.errors import PipelineError
    from queenspark.pipeline.process.pipeline import Pipeline
    from queenspark.store.errors import StoreError

    settings = Settings.from_env(database_url=database_url, spark_master=master)
    url = require_database(settings)
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)-7s %(message)s", force=True
    )
    # Errors of other loggers are raised as well, and reported in one sentence.
    logging.getLogger().handlers[0].addFilter(logging.Filter("queenspark"))
    os.umask(0o077)  # the checkpoint is for its owner only
    running = Pipeline(settings, url)
    on_stop(lambda *_: running.stop())
    if exit_with_parent:
        stop_with_parent()
    try:
        running.run()
    except (PipelineError, StoreError) as error:
        raise Failure(str(error)) from None
