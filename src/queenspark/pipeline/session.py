"""The former path of `start_session`, kept for compatibility; use `queenspark.pipeline`."""

from .spark.session import start_session

__all__ = ["start_session"]
