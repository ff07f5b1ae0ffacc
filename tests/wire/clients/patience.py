"""How long a poll waits: only the newer client has a method for it."""

from queen.builders import QueueBuilder


def waiting(builder: QueueBuilder, millis: int) -> QueueBuilder:
    """The builder, with polls that wait this long."""
    if hasattr(builder, "timeout_millis"):
        return builder.timeout_millis(millis)
    builder._timeout_millis = millis
    return builder
