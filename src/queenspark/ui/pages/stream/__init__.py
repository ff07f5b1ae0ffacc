"""The page of a stream: its windows on a timeline, its groups and its definition."""

from .page import register

__all__ = ["register"]
