"""Why the next window of a stream or job is not sealed yet."""

from .explain import explain

__all__ = ["explain"]
