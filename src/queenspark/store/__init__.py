"""The only part that speaks SQL to PostgreSQL: schema, push, pop, ack, leases, seek, retention."""

from .store import Store

__all__ = ["Store"]
