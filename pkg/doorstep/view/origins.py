"""Which pages may connect: browsers let any page on the web open a WebSocket to any port, and say from where it came.

viser has no setting for it. While it starts, websockets' `serve`, which it calls, is one that looks first.
"""

from __future__ import annotations

import contextlib
import http
import ipaddress
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import websockets.asyncio.server as server
from websockets.http11 import Request, Response

from doorstep.errors import LibraryError


@contextlib.contextmanager
def own_page_only(host: str) -> Iterator[None]:
    """A server of viser that starts within it, on this host, takes connections from its own page only.

    Raises:
        LibraryError: it started in another way.
    """
    serve, guarded = server.serve, False

    def serve_own_page(*arguments: Any, process_request: Any, **options: Any) -> Any:
        nonlocal guarded
        guarded = True

        def check(connection: server.ServerConnection, request: Request) -> Response | None:
            if not is_own(request.headers.get("Origin"), request.headers.get("Host", ""), host):
                return connection.respond(http.HTTPStatus.FORBIDDEN, "Only the viewer's own page may connect.\n")
            answer: Response | None = process_request(connection, request)
            return answer

        return serve(*arguments, process_request=check, **options)

    server.serve = serve_own_page
    try:
        yield
    finally:
        server.serve = serve
    if not guarded:
        raise LibraryError("This version of viser starts its server in a way that doorstep cannot guard.")


def is_own(origin: str | None, asked: str, host: str) -> bool:
    """Whether a request comes from the page itself.

    Args:
        origin: where the page that asks is from; None: it is no page.
        asked: whom it asks, as host:port.
        host: where the server listens. On this machine alone it goes by this machine's names only: whoever owns
            another name can have it lead here.
    """
    if origin is None:
        return True
    if urlsplit(origin).netloc != asked:
        return False
    return not is_loopback(host) or is_loopback(urlsplit(f"//{asked}").hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a name or an address is that of the machine itself, and of nothing else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
