"""The only package with SQL for PostgreSQL: schema, push, pop, ack, leases, seek, retention."""

from .store import Store

__all__ = ["Store"]
