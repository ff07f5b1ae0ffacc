"""The exceptions of the pipeline, in one tree."""


class PipelineError(Exception):
    """Base class of all pipeline errors."""


class JavaNotFound(PipelineError):
    """There is no suitable Java for Spark; the message says how to get one."""


class SparkNotStarted(PipelineError):
    """Spark did not start; the message names the log."""


class SparkEnded(PipelineError):
    """Spark's Java process has died; this process cannot continue."""


class OptionError(PipelineError, ValueError):
    """An option or a column of the data source is invalid; the message names it and the fix."""


class JobFailed(PipelineError):
    """A job with its own query cannot continue."""
