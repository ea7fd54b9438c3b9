"""Who may call a server, and how many at once: what the viewer and served engines check before anything else.

A browser lets a page of any site open connections to any port, and sends that site as the `Origin`. The owner of a
name can make it resolve to this machine: `Host` is then that name, and the page's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import re
import resource
import socket
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, final
from urllib.parse import SplitResult, urlsplit

from doorstep._arguments import refuse, shown
from doorstep.errors import ArgumentError

HEAD_SECONDS = 10.0  # until a request's head is there
WRITE_SECONDS = 30.0  # until a client has read what it was sent
RETRY = {"Retry-After": "1"}  # seconds
_DESCRIPTORS_KEPT = 64  # for everything but connections


class RefusedError(Exception):
    """A call that is not let in, with the status of its answer and more headers."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


@final
class Guard:
    """Lets in those that know the token or, without one, all but pages of other sites.

    Args:
        host: where the server listens.
        allow_hosts: names of proxies, by which browsers reach the server.
        token: that every call must have; None: none.

    Raises:
        ArgumentError: an argument is of another kind, or the token is too short.
    """

    def __init__(self, host: str, allow_hosts: Sequence[str], token: str | None = None) -> None:
        if not isinstance(host, str) or not host:
            refuse("host", "an address or a name of this machine", host)
        names = [""] if isinstance(allow_hosts, str) or not isinstance(allow_hosts, Sequence) else allow_hosts
        if not all(isinstance(name, str) and re.fullmatch(r"[\w.-]+", name) for name in names):
            refuse("allow_hosts", "a list of names of hosts, without http:// and port", allow_hosts)
        if token is not None and not (isinstance(token, str) and re.fullmatch(r"[!-~]{16,}", token)):
            must = "token must be at least 16 printable characters of ASCII, without spaces"
            raise ArgumentError(must, argument="token")  # without the value, which is secret
        own = socket.gethostname()
        self.has_token = token is not None
        self._allowed, self._token = {name.lower() for name in names}, token
        self._names = {name.lower() for name in ("localhost", host, own, own.partition(".")[0], *names) if name}

    def check(self, hosts: Sequence[str], origins: Sequence[str], authorization: str = "") -> None:
        """
        Args:
            hosts, origins, authorization: what the request has of these headers.

        Raises:
            RefusedError: the call is not let in.
        """
        if len(hosts) != 1 or len(origins) > 1:
            raise RefusedError(400, "the request must have one Host, and at most one Origin")
        if self._token is not None:  # no page of another site knows it
            if not hmac.compare_digest(authorization.encode(errors="replace"), f"Bearer {self._token}".encode()):
                how = {"WWW-Authenticate": "Bearer"}
                raise RefusedError(401, "the request must have the header 'Authorization: Bearer TOKEN'", **how)
            return
        name = _split(f"//{hosts[0]}").hostname or ""
        if name not in self._names and not _is_address(name):
            raise RefusedError(403, f"Host is {shown(hosts[0])}, no address and no name of this machine. {_HINT}")
        for origin in origins:
            page = _split(origin)
            if page.netloc != hosts[0] and page.hostname not in self._allowed:
                theirs, own = shown(origin), shown(hosts[0])
                raise RefusedError(403, f"Origin is {theirs}, another site than Host, which is {own}. {_HINT}")


_HINT = "If a proxy that you trust has this name, start with --allow-host NAME, in Python allow_hosts=['NAME']."


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host: "localhost", or an address such as 127.0.0.1."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    """Without a site, if it is no URL."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


@final
class Room:
    """So many connections. The one that has waited longest for its request makes room for the next.

    Args:
        most: that are answered at once; fewer where the process may not open so many files.
        files: that each needs.
    """

    def __init__(self, most: int, files: int = 1) -> None:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = most if allowed == resource.RLIM_INFINITY else (allowed - _DESCRIPTORS_KEPT) // (2 * files)
        self.most = max(min(most, spare), 1)
        self._waiting: dict[asyncio.WriteTransport, None] = {}
        self._answered = 0

    def enter(self, connection: asyncio.WriteTransport) -> None:
        """It has no request yet."""
        if self._waiting and len(self._waiting) + self._answered >= self.most:
            first = next(iter(self._waiting))
            self.leave(first)
            first.abort()
        self._waiting[connection] = None

    def leave(self, connection: asyncio.WriteTransport) -> None:
        """It has ended."""
        self._waiting.pop(connection, None)

    @contextlib.contextmanager
    def answering(self, connection: asyncio.WriteTransport) -> Iterator[None]:
        """Its request, which may be answered, makes room for no other.

        Raises:
            RefusedError: too many are answered already.
        """
        if self._answered >= self.most:
            raise RefusedError(503, f"{self.most} connections are open, and no more may be", **RETRY)
        self.leave(connection)
        self._answered += 1
        try:
            yield
        finally:
            self._answered -= 1
            if not connection.is_closing():
                self._waiting[connection] = None


def report_once(loop: asyncio.AbstractEventLoop) -> None:
    """What goes wrong in a loop is logged once for each place: clients could fill a disk with it."""
    logged = set()

    def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        place = type(error), *traceback.format_tb(error and error.__traceback__)[-1:]
        if place not in logged:
            logged.add(place)
            loop.default_exception_handler(context)

    loop.set_exception_handler(report)
