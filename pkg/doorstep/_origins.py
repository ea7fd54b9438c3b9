"""Which pages of a browser may call a server: what viewers and served engines check of `Host` and `Origin`.

A browser lets a page of any site open connections to any port, and sends that site as the `Origin`.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host: "localhost", or an address such as 127.0.0.1."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_this_machine(requested: str) -> bool:
    """Whether a `Host`, as host:port, is a name that only this machine has. The owner of any other name can make it
    resolve to 127.0.0.1."""
    try:
        return is_loopback(urlsplit(f"//{requested}").hostname or "")
    except ValueError:
        return False


def site_of(origin: str) -> str | None:
    """The site of an `Origin`, as host:port; None: it is no URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None
