"""Errors of the embedded PostgreSQL."""


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL cannot run; the message is one sentence with the reason."""
