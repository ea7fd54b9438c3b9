"""The gate before the viewer's server: what is refused, and that the server behind it sees nothing of that."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from doorstep._callers import Guard
from doorstep.viewer import gate
from doorstep.viewer.gate import Frames, open_gate, random_loopback

PATIENCE = 20  # seconds
OWN = (b"Host: 127.0.0.1:%d", b"Origin: http://127.0.0.1:%d")


class Inner:
    """A server that answers every head with HELLO, and keeps all that it was sent."""

    HELLO = b"HTTP/1.1 101 hello\r\n\r\n"

    def __init__(self) -> None:
        self.seen = bytearray()
        self._socket = socket.create_server((random_loopback(), 0))
        self.address = self._socket.getsockname()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(self.HELLO)
            while data := connection.recv(1 << 16):
                self.seen += data

    def close(self) -> None:
        self._socket.close()


class Opened:
    """A gate, and what is behind it."""

    def __init__(self, inner: Inner, port: int) -> None:
        self.inner, self.port = inner, port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def head(self, *lines: bytes) -> bytes:
        """Of a request with these headers, in which %d is the gate's port."""
        return b"\r\n".join([b"GET / HTTP/1.1", *(line.replace(b"%d", b"%d" % self.port) for line in lines), b"", b""])

    def ask(self, *lines: bytes) -> bytes:
        """The status of the answer."""
        with self.connect() as connection:
            connection.sendall(self.head(*lines))
            return connection.recv(100).split()[1]

    def upgraded(self) -> socket.socket:
        """A connection that has become a WebSocket."""
        connection = self.connect()
        connection.sendall(self.head(*OWN, b"Upgrade: websocket"))
        assert connection.recv(100) == Inner.HELLO
        return connection


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    """By a parameter: with room for so many connections."""
    if hasattr(request, "param"):
        request.getfixturevalue("monkeypatch").setattr(gate, "MOST_CONNECTIONS", request.param)
    inner = Inner()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with open_gate("127.0.0.1", port, inner.address, Guard("127.0.0.1", ["proxy.example"])):
        yield Opened(inner, port)
    inner.close()


def frame(contents: bytes, *, last: bool = True, kind: int = 2) -> bytes:
    """A masked one."""
    size = len(contents)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = b"\xfe" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xff" + size.to_bytes(8, "big")
    return bytes([kind | (0x80 if last else 0)]) + length + bytes(4) + contents


def closed(connection: socket.socket) -> bool:
    """Waits until the other side has ended the connection."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


def wait_for(opened: Opened, contents: bytes) -> None:
    end = time.monotonic() + PATIENCE
    while contents not in opened.inner.seen:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_may_pass_reaches_the_server_unchanged(opened: Opened) -> None:
    frames = frame(b"a" * 5) + frame(b"b" * 70_000)
    with opened.upgraded() as connection:
        connection.sendall(frames)
        expected = opened.head(*OWN, b"Upgrade: websocket") + frames
        wait_for(opened, expected)
    assert opened.inner.seen == expected
    assert opened.ask(b"Host: localhost:%d") == b"101"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([b"Host: 127.0.0.1:%d", b"Origin: https://evil.example"], b"403"),
        ([b"Host: 127.0.0.1:%d", b"Origin: null"], b"403"),
        ([b"Host: 127.0.0.1:%d", b"Origin: http://127.0.0.1:1"], b"403"),
        ([b"Host: 127.0.0.1:%d", b"Origin: http://[::1"], b"403"),
        ([b"Host: evil.example:%d"], b"403"),  # a name that its owner lets lead here, and a page's own request
        ([b"Host: evil.example:%d", b"Origin: http://evil.example:%d"], b"403"),
        ([b"Host: [::1"], b"403"),
        ([b"Host: "], b"403"),
        ([], b"400"),
        ([b"Host: 127.0.0.1:%d", b"host: evil.example"], b"400"),
        ([*OWN, b"ORIGIN: https://evil.example"], b"400"),
        ([b"Host: 127.0.0.1:%d", b"X: " + b"a" * 2 * gate.HEAD_BYTES], b"431"),
    ],
)
def test_what_must_not_pass_is_answered_and_not_seen(opened: Opened, lines: list[bytes], status: bytes) -> None:
    assert opened.ask(*lines) == status
    assert not opened.inner.seen


def test_a_head_that_does_not_come_is_not_awaited_for_ever(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "HEAD_SECONDS", 0.05)
    with opened.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.")
        assert closed(connection)
    assert not opened.inner.seen


@pytest.mark.parametrize("opened", [3], indirect=True)
def test_there_is_room_for_so_many_connections(opened: Opened) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(opened.upgraded())
        assert opened.ask(*OWN) == b"503"
    end = time.monotonic() + PATIENCE
    while opened.ask(*OWN) != b"101":
        assert time.monotonic() < end


@pytest.mark.parametrize("opened", [3], indirect=True)
def test_connections_that_send_nothing_keep_nobody_out(opened: Opened) -> None:
    with opened.upgraded() as kept, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(opened.connect()) for _ in range(8)]
        assert opened.ask(*OWN) == b"101"
        assert all(closed(connection) for connection in idle[:-2])
        kept.sendall(frame(b"still here"))
        wait_for(opened, b"still here")


def test_a_client_that_ends_its_side_is_answered(opened: Opened) -> None:
    with opened.connect() as connection:
        connection.sendall(opened.head(*OWN))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == Inner.HELLO


def test_a_page_behind_an_allowed_proxy_passes_and_a_refusal_says_how(opened: Opened) -> None:
    assert opened.ask(b"Host: proxy.example", b"Origin: https://proxy.example") == b"101"
    with opened.connect() as connection:
        connection.sendall(opened.head(b"Host: hub.example"))
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert b"'hub.example'" in answer
    assert b"--allow-host" in answer


@pytest.mark.parametrize(
    "sent",
    [
        b"\x82\xff" + (1 << 62).to_bytes(8, "big") + bytes(4),
        frame(b"a" * 1001),
        frame(b"a" * 600, last=False) + frame(b"a" * 401, kind=0),
        frame(b"a" * 600, last=False) + frame(b"", kind=9) + frame(b"a" * 401, kind=0, last=False),
    ],
)
def test_a_message_that_is_too_long_ends_the_connection(
    opened: Opened, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MESSAGE_BYTES", 1000)
    with opened.upgraded() as connection, opened.upgraded() as other:
        connection.sendall(sent)
        assert closed(connection)
        other.sendall(frame(b"still here"))
        wait_for(opened, b"still here")
        assert opened.ask(*OWN) == b"101"
    assert b"a" * 401 not in opened.inner.seen


def test_messages_come_no_faster_than_allowed(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "BYTES_PER_SECOND", 10_000)
    monkeypatch.setattr(gate, "FRAME_COST", 1000)
    with opened.upgraded() as connection:
        began = time.monotonic()
        connection.sendall(frame(b"") * 20)  # two seconds' worth
        wait_for(opened, frame(b"") * 20)
        assert time.monotonic() - began > 1


def test_frames_are_counted_however_they_are_cut() -> None:
    generator = random.Random(5)
    sizes = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000, 3]
    sent = b"".join(frame(bytes(size)) for size in sizes)
    for _ in range(20):
        cuts = sorted(generator.sample(range(1, len(sent)), 30))
        frames = Frames()
        pieces = [sent[first:last] for first, last in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
        assert sum(frames.add(piece) for piece in pieces) == len(sizes)
