"""Errors of connectors that both files and Kafka raise."""


class WriteFailed(Exception):
    """Rows could not be written. States the problem, then the fix. Any number of them may be written."""
