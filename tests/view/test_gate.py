"""The gate before the viewer's server: what is refused, and that the server behind it sees nothing of that."""

import asyncio
import contextlib
import random
import re
import socket
import threading
import time

import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import PATIENCE, until

from doorstep._callers import Guard
from doorstep.viewer import gate
from doorstep.viewer.gate import Frames, open_gate, random_loopback

HOST = b"Host: 127.0.0.1:%d"
OWN = (HOST, b"Origin: http://127.0.0.1:%d")


class Opened:
    """A gate, and a server behind it that answers every head with HELLO and keeps all that it was sent."""

    HELLO = b"HTTP/1.1 101 hello\r\n\r\n"

    def __init__(self, port):
        self.port, self.seen = port, bytearray()

    def serve(self, server):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.keep, args=(server.accept()[0],), daemon=True).start()

    def keep(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.sendall(self.HELLO)
            while data := connection.recv(1 << 16):
                self.seen += data

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def head(self, *lines):
        """Of a request with these headers, in which %d is the gate's port."""
        return b"\r\n".join([b"GET / HTTP/1.1", *(line.replace(b"%d", b"%d" % self.port) for line in lines), b"", b""])

    def ask(self, *lines):
        """The status of the answer."""
        with self.connect() as connection:
            connection.sendall(self.head(*lines))
            return connection.recv(100).split()[1]

    def upgraded(self):
        """A connection that has become a WebSocket."""
        connection = self.connect()
        connection.sendall(self.head(*OWN, b"Upgrade: websocket"))
        assert connection.recv(100) == self.HELLO
        return connection

    def wait_for(self, contents):
        until(lambda: contents in self.seen)


@pytest.fixture
def open_one(monkeypatch):
    """Opens gates with other limits."""
    start, ports = asyncio.start_server, []

    async def start_and_note(*arguments, **options):
        server = await start(*arguments, **options)
        ports.append(server.sockets[0].getsockname()[1])
        return server

    with contextlib.ExitStack() as stack:
        monkeypatch.setattr(asyncio, "start_server", start_and_note)

        def open_it(**limits):
            for name, value in limits.items():
                monkeypatch.setattr(gate, name, value)
            server = stack.enter_context(socket.create_server((random_loopback(), 0)))
            guard = Guard("127.0.0.1", ["proxy.example"])
            stack.enter_context(open_gate("127.0.0.1", 0, server.getsockname(), guard))
            opened = Opened(ports[-1])
            threading.Thread(target=opened.serve, args=(server,), daemon=True).start()
            return opened

        yield open_it


def frame(contents, last=True, kind=2):
    """A masked one."""
    size = len(contents)
    long = b"\xfe" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xff" + size.to_bytes(8, "big")
    length = bytes([0x80 | size]) if size < 126 else long
    return bytes([kind | (0x80 if last else 0)]) + length + bytes(4) + contents


def closed(connection):
    """Waits until the other side has ended the connection."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


def test_what_may_pass_reaches_the_server_unchanged_and_nothing_else_is_seen(open_one):
    opened, frames = open_one(), frame(b"a" * 5) + frame(b"b" * 70_000)
    expected = opened.head(*OWN, b"Upgrade: websocket") + frames
    origins, evil = (b"https://evil.example", b"null", b"http://127.0.0.1:1", b"http://[::1"), b"Host: evil.example:%d"
    refused = {
        # A name that its owner lets lead here, and a page's own request.
        b"403": [*((HOST, b"Origin: " + one) for one in origins), (evil,), (evil, b"Origin: http://evil.example:%d")],
        b"400": [(), (HOST, b"host: evil.example"), (*OWN, b"ORIGIN: https://evil.example")],
        b"431": [(HOST, b"X: " + b"a" * 2 * gate.HEAD_BYTES)],
    }
    refused[b"403"] += [(b"Host: [::1",), (b"Host: ",)]
    for status, lines in [(status, lines) for status, requests in refused.items() for lines in requests]:
        assert opened.ask(*lines) == status, lines
    with opened.connect() as connection:  # a refusal says how to allow it
        connection.sendall(opened.head(b"Host: hub.example"))
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert re.search(rb"(?s)'hub.example'.*--allow-host", answer)
    assert not opened.seen
    with opened.upgraded() as connection:
        connection.sendall(frames)
        opened.wait_for(expected)
    assert opened.seen == expected  # and then more is asked
    assert opened.ask(b"Host: localhost:%d") == b"101"
    assert opened.ask(b"Host: proxy.example", b"Origin: https://proxy.example") == b"101"  # an allowed one
    with opened.connect() as connection:  # a client that ends its side is answered
        connection.sendall(opened.head(*OWN))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == Opened.HELLO


def test_a_head_that_does_not_come_is_not_awaited_for_ever(open_one):
    opened = open_one(HEAD_SECONDS=0.05)
    with opened.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.")
        assert (closed(connection), opened.seen) == (True, b"")


def test_there_is_room_for_so_many_connections_of_which_those_that_send_nothing_go(open_one):
    opened = open_one(MOST_CONNECTIONS=3)
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(opened.upgraded())
        assert opened.ask(*OWN) == b"503"
    until(lambda: opened.ask(*OWN) == b"101")
    with opened.upgraded() as kept, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(opened.connect()) for _ in range(8)]
        assert opened.ask(*OWN) == b"101"
        assert all(closed(connection) for connection in idle[:-2])
        kept.sendall(frame(b"still here"))
        opened.wait_for(b"still here")


def test_a_message_that_is_too_long_ends_its_connection_alone(open_one):
    opened = open_one(MESSAGE_BYTES=1000)
    begun = frame(b"a" * 600, last=False)
    more = frame(b"a" * 401, kind=0), frame(b"", kind=9) + frame(b"a" * 401, kind=0, last=False)
    huge = b"\x82\xff" + (1 << 62).to_bytes(8, "big") + bytes(4)
    too_long = [huge, frame(b"a" * 1001), *(begun + one for one in more)]
    for number, sent in enumerate(too_long):
        with opened.upgraded() as connection, opened.upgraded() as other:
            connection.sendall(sent)
            assert closed(connection)
            other.sendall(frame(b"still here %d" % number))
            opened.wait_for(b"still here %d" % number)
            assert opened.ask(*OWN) == b"101"
    assert b"a" * 401 not in opened.seen
    with opened.upgraded() as connection:
        parts = frame(b"b" * 950, last=False), frame(b"ping" * 20, kind=9), frame(b"b" * 50, kind=0)
        connection.sendall(b"".join(parts) + frame(b"c" * 1000))
        opened.wait_for(frame(b"c" * 1000))


def test_messages_come_no_faster_than_allowed(open_one):
    opened = open_one(BYTES_PER_SECOND=20_000, FRAME_COST=1000)
    with opened.upgraded() as connection:
        began = time.monotonic()
        connection.sendall(frame(b"") * 20)  # a second's worth
        opened.wait_for(frame(b"") * 20)
        assert time.monotonic() - began > 0.5


def test_frames_are_counted_however_they_are_cut():
    generator, sizes = random.Random(5), [0, 1, 125, 126, 127, 65_535, 65_536, 70_000, 3]
    sent = b"".join(frame(bytes(size)) for size in sizes)
    for _ in range(20):
        cuts, frames = sorted(generator.sample(range(1, len(sent)), 30)), Frames()
        pieces = [sent[first:last] for first, last in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
        assert sum(frames.add(piece) for piece in pieces) == len(sizes)
