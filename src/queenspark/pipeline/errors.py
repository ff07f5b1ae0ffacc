"""What can go wrong in the pipeline, as one tree."""


class PipelineError(Exception):
    """Base of all errors of the pipeline."""


class JavaNotFound(PipelineError):
    """There is no Java that Spark can run on; the message says how to get one."""


class SparkNotStarted(PipelineError):
    """Spark did not start; the message says where it says why."""


class SparkEnded(PipelineError):
    """Spark's Java process has died; this process cannot go on."""


class OptionError(PipelineError, ValueError):
    """An option or a column of the data source cannot be used; the message names it and says what to do."""


class JobFailed(PipelineError):
    """A job with a query of its own cannot go on."""
