"""Loopback: the hosts that always mean this machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host, without a port, is `localhost` or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_loopback_url(url: str) -> bool:
    """Whether the host of a URL is loopback; `//` and a `Host` header make a URL too."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
