"""What can go wrong with the embedded PostgreSQL."""


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL cannot run; the message says why in one sentence."""
