"""403: the caller lacks a right."""

from __future__ import annotations

from ..errors import ApiError
from .caller import Caller
from .right import Right


class Forbidden(ApiError):
    """The caller's role or scopes lack a right, on any name."""

    def __init__(self, caller: Caller, right: Right, message: str | None = None) -> None:
        fix = "ask an administrator for a role or scope that includes it"
        super().__init__(403, message or f"{caller.name} lacks the right {right}: {fix}")
        self.caller = caller
        self.right = right
