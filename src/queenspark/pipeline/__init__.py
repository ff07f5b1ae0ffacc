"""The data pipeline on Spark: Spark itself, the connector `queen`, the streams query, and the process."""

from .connector.data_source import register
from .spark.session import start_session

__all__ = ["register", "start_session"]
