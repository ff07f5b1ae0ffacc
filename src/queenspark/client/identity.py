"""The consumer id under which a client's leases are listed."""

import os
import platform
from uuid import uuid4


def new_consumer_id() -> str:
    """Return an id for one client: host, process id and a random suffix."""
    return f"{platform.node()[:100] or 'unknown'}-{os.getpid()}-{uuid4().hex[:6]}"
