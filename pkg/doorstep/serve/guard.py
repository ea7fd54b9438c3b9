"""Who may call: programs of this machine, or those that know a token; no pages of other sites in a browser."""

from __future__ import annotations

import hmac
from typing import Any, final

from doorstep._arguments import refuse
from doorstep._origins import is_loopback, names_this_machine, site_of
from doorstep.errors import ArgumentError

_SHORTEST_TOKEN = 16
_ASKS = {"WWW-Authenticate": "Bearer"}


class RefusedError(Exception):
    """A call that is not let in, with the status of its answer and more headers."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


@final
class Guard:
    """
    Args:
        host: where the server listens.
        token: that every call must have; None: none.

    Raises:
        ArgumentError: other machines reach the host and there is no token, or the token is too short.
    """

    def __init__(self, host: str, token: str | None) -> None:
        if not isinstance(host, str) or not host:
            refuse("host", "an address or a name of this machine", host)
        if token is not None and not _is_token(token):
            must = f"token must be at least {_SHORTEST_TOKEN} printable characters of ASCII, without spaces"
            raise ArgumentError(must, argument="token")  # without the value, which is secret
        self._is_local, self._token = is_loopback(host), token
        if not self._is_local and token is None:
            hint = "pass a token: --token-file FILE, or token= in Python; or listen on 127.0.0.1"
            refuse("host", "an address of this machine alone, such as 127.0.0.1, where there is no token", host, hint)

    def check(self, headers: Any) -> None:
        """
        Raises:
            RefusedError: the call is not let in.
        """
        hosts = headers.getall("Host", [])
        if len(hosts) != 1:
            raise RefusedError(400, "the request must have one Host header")
        # A page of another site may have its name resolve to 127.0.0.1: then Host is that name. Beyond this machine the
        # token, which such a page does not know, keeps it out
        if self._is_local and not names_this_machine(hosts[0]):
            raise RefusedError(403, f"Host is {hosts[0]!r}; it must be localhost or 127.0.0.1")
        origins = headers.getall("Origin", [])
        if any(site_of(origin) != hosts[0] for origin in origins):
            raise RefusedError(403, "requests of pages of other sites are refused")
        if self._token is not None:
            given = headers.get("Authorization", "").encode(errors="replace")
            if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
                raise RefusedError(401, "the request must have the header 'Authorization: Bearer TOKEN'", **_ASKS)


def _is_token(token: Any) -> bool:
    is_text = isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token
    return is_text and len(token) >= _SHORTEST_TOKEN
