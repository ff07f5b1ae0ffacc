"""The former path of `start_session`, for programs that import it from here; use `queenspark.pipeline`."""

from .spark.session import start_session

__all__ = ["start_session"]
