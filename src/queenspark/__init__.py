"""Queenspark: a partitioned, durable message queue on PostgreSQL."""

from importlib.metadata import version

__version__ = version("queenspark")
