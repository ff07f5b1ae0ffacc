"""The data pipeline on Spark: Java, the session, and the data source `queen`."""

from .data_source import register

__all__ = ["register"]
