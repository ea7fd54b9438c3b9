"""Who may call a server, and how many at once."""

import asyncio
import logging
import resource

from tests.refuses import refuses

from doorstep._callers import Guard, RefusedError, Room, report_once

TOKEN = "0123456789abcdef"
ALLOWED = ("proxy.example", "Hub.Example")


def refusal(guard, hosts, origins=(), authorization=""):
    """None: it is let in."""
    try:
        guard.check(list(hosts), list(origins), authorization)
    except RefusedError as refused:
        return refused
    return None


# Host and origin of those that are let in without a token: pages of the server's own names.
PASS = [
    ("127.0.0.1:8080", None),
    ("LOCALHOST:8080", None),
    ("192.168.7.7:8080", None),  # the owner of a name decides where it leads, but not where an address does
    ("[::1]:8080", "http://[::1]:8080"),
    ("localhost:9000", "http://localhost:9000"),  # a port that leads here
    ("proxy.example", "https://proxy.example"),
    ("hub.example", "https://hub.example"),
    ("127.0.0.1:8080", "https://proxy.example"),  # a proxy that sends its own Host
    ("proxy.example:8443", None),
]
REFUSED = [
    ("evil.example:8080", None),
    ("evil.example:8080", "http://evil.example:8080"),  # a name that its owner lets lead here
    ("evil.example:8080", "https://proxy.example"),
    ("proxy.example", "https://evil.example"),
    *(("127.0.0.1:8080", origin) for origin in ("https://evil.example", "http://127.0.0.1:1", "http://localhost:8080")),
    *(("127.0.0.1:8080", origin) for origin in ("null", "http://[", "", "https://localhost.evil.example:8080")),
    ("127.0.0.1:8080", "https://proxy.example.evil.example"),
    ("127.0.0.1:8080", "https://proxy.example@evil.example"),
    *((host, None) for host in ("127.0.0.1.evil.example", "proxy.example.evil.example", "[::1", "")),
    ("", "http://"),
]


def test_without_a_token_only_pages_of_the_servers_own_names_may_call():
    for listens in ("127.0.0.1", "0.0.0.0", "::", "localhost"):
        for host, origin in PASS + REFUSED:
            origins = [] if origin is None else [origin]
            refused = refusal(Guard(listens, ALLOWED), [host], origins)
            assert (refused is None) is ((host, origin) in PASS), (host, origin)
            if refused is not None:
                assert (refused.status, "--allow-host" in str(refused)) == (403, True)
            for wrong in ("", TOKEN, f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \udcff"):
                assert refusal(Guard(listens, ALLOWED, TOKEN), [host], origins, wrong).status == 401
            assert refusal(Guard(listens, (), TOKEN), [host], origins, f"Bearer {TOKEN}") is None


def test_a_request_has_one_host_and_at_most_one_origin_and_proxies_have_names():
    for token in (None, TOKEN):
        guard = Guard("127.0.0.1", (), token)
        for hosts, origins in (([], []), (["localhost"] * 2, []), (["localhost"], ["http://localhost"] * 2)):
            assert refusal(guard, hosts, origins, f"Bearer {TOKEN}").status == 400
    for bad in ("proxy.example", ["https://proxy.example"], ["proxy.example:80"], ["*"], [""], [3], 3):
        refuses("allow_hosts", Guard, "127.0.0.1", bad)


def test_a_process_that_may_open_few_files_has_room_for_fewer(monkeypatch):
    for allowed, files, most in ((resource.RLIM_INFINITY, 1, 1000), (10**6, 3, 1000), (1024, 1, 480), (20, 1, 1)):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, allowed=allowed: (allowed, allowed))
        assert Room(1000, files).most == most


def test_what_goes_wrong_again_and_again_is_logged_once(caplog):
    def fail(kind):
        raise kind("again")

    async def run():
        loop = asyncio.get_running_loop()
        report_once(loop)
        for _ in range(100):
            for kind in (OSError, ValueError):
                loop.call_soon(fail, kind)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [OSError, ValueError]
