"""Rights: what a caller must be allowed to do, and what each role may."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Right(StrEnum):
    """What a caller must be allowed to do. Every route needs exactly one."""

    # Enums hash by name, in Python; every request asks several times whether a right is in a set.
    __hash__ = str.__hash__

    #: Everybody may, without a token.
    PUBLIC = "public"
    #: Everybody may whose token or key is good.
    KNOWN = "known"
    QUEUE_PUSH = "queue:push"
    QUEUE_CONSUME = "queue:consume"
    #: Push and acknowledge in one step; each operation needs its own right.
    QUEUE_TRANSACT = "queue:transact"
    QUEUE_READ = "queue:read"
    #: Create a queue, or change its options.
    QUEUE_CONFIGURE = "queue:configure"
    QUEUE_ADMIN = "queue:admin"
    STREAM_CONSUME = "stream:consume"
    STREAM_READ = "stream:read"
    STREAM_ADMIN = "stream:admin"
    JOB_READ = "job:read"
    JOB_ADMIN = "job:admin"
    #: Run SQL; each statement needs the right to what it reads, pushes to, creates or drops.
    SQL = "sql:run"
    SYSTEM_READ = "system:read"
    SYSTEM_ADMIN = "system:admin"
    #: Make and revoke keys, and read the audit log.
    ACCESS_ADMIN = "access:admin"

    @property
    def kind(self) -> str:
        """The kind of thing that it is a right to."""
        return self.value.partition(":")[0]

    @property
    def action(self) -> str:
        """What may be done with it."""
        return self.value.partition(":")[2]

    @property
    def is_administrative(self) -> bool:
        """Whether whatever is done with this right is noted in the audit log."""
        return self in _ADMINISTRATIVE


_ADMINISTRATIVE = frozenset(
    {
        Right.QUEUE_CONFIGURE,
        Right.QUEUE_ADMIN,
        Right.STREAM_ADMIN,
        Right.JOB_ADMIN,
        Right.SYSTEM_ADMIN,
        Right.ACCESS_ADMIN,
    }
)

OF_EVERYBODY = frozenset({Right.PUBLIC, Right.KNOWN})
"""Rights that need neither a role nor a scope."""

PARTS: Mapping[Right, frozenset[Right]] = MappingProxyType(
    {
        Right.QUEUE_TRANSACT: frozenset({Right.QUEUE_PUSH, Right.QUEUE_CONSUME}),
        Right.SQL: frozenset({Right.QUEUE_READ, Right.QUEUE_PUSH, Right.JOB_READ, Right.JOB_ADMIN}),
    }
)
"""Rights that come with any of these: each operation or statement needs one of its own."""

_READ = frozenset({Right.QUEUE_READ, Right.STREAM_READ, Right.JOB_READ, Right.SYSTEM_READ, Right.SQL})
_WRITE = _READ | {
    Right.QUEUE_PUSH,
    Right.QUEUE_CONSUME,
    Right.QUEUE_TRANSACT,
    Right.QUEUE_CONFIGURE,
    Right.STREAM_CONSUME,
}

ROLES: Mapping[str, frozenset[Right]] = MappingProxyType(
    {"read-only": _READ, "read-write": _WRITE, "admin": frozenset(Right) - OF_EVERYBODY}
)
"""The rights of each role, the weakest first."""

UNNAMED = frozenset({Right.ACCESS_ADMIN})
"""Rights that no scope gives: whoever makes keys can give themselves any other right."""
