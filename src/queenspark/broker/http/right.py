"""Rights, and the roles that grant them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Right(StrEnum):
    """A permission. Every route requires exactly one."""

    # Enum members hash by name, in Python code; every request tests set membership several times.
    __hash__ = str.__hash__

    #: Granted to everyone, without a token.
    PUBLIC = "public"
    #: Granted to everyone with a valid token or key.
    KNOWN = "known"
    QUEUE_PUSH = "queue:push"
    QUEUE_CONSUME = "queue:consume"
    #: Push and ack in one transaction; each operation requires its own right.
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
    #: Run SQL; each statement requires the rights on its sources, targets and objects.
    SQL = "sql:run"
    SYSTEM_READ = "system:read"
    SYSTEM_ADMIN = "system:admin"
    #: Create and revoke keys, and read the audit log.
    ACCESS_ADMIN = "access:admin"

    @property
    def kind(self) -> str:
        """The kind of resource."""
        return self.value.partition(":")[0]

    @property
    def action(self) -> str:
        """The permitted action."""
        return self.value.partition(":")[2]

    @property
    def is_administrative(self) -> bool:
        """Whether actions with this right are recorded in the audit log."""
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
"""Rights that require neither a role nor a scope."""

PARTS: Mapping[Right, frozenset[Right]] = MappingProxyType(
    {
        Right.QUEUE_TRANSACT: frozenset({Right.QUEUE_PUSH, Right.QUEUE_CONSUME}),
        Right.SQL: frozenset({Right.QUEUE_READ, Right.QUEUE_PUSH, Right.JOB_READ, Right.JOB_ADMIN}),
    }
)
"""Rights implied by any of these: each operation or statement requires its own."""

OF_WINDOWS: Mapping[Right, Right] = MappingProxyType(
    {
        Right.QUEUE_CONSUME: Right.STREAM_CONSUME,
        Right.QUEUE_READ: Right.STREAM_READ,
        Right.QUEUE_CONFIGURE: Right.STREAM_ADMIN,
        Right.QUEUE_ADMIN: Right.STREAM_ADMIN,
    }
)
"""The right on a stream that an operation on its window queue requires, instead of the right on a queue."""

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
"""The rights of each role, weakest first."""

UNNAMED = frozenset({Right.ACCESS_ADMIN})
"""Rights that no scope grants: a caller who creates keys can grant themselves any other right."""
