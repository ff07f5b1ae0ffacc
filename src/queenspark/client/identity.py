"""The name under which a client's leases are shown."""

import os
import platform
from uuid import uuid4


def new_consumer_id() -> str:
    """A name for one client: host, process, and a random part for clients of the same process."""
    return f"{platform.node()[:100] or 'unknown'}-{os.getpid()}-{uuid4().hex[:6]}"
