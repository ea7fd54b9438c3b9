"""What clients send to `doorstep serve`: bytes of a connection, most of which are calls with a right length."""

from __future__ import annotations

import contextlib
import random
import re
import socket
from collections.abc import Sequence

from tests.fuzz.mutations import change_bytes, change_json
from tests.fuzz.running import corpus
from tests.pkg.serve.serving import PATIENCE, head_of, served

import doorstep

SHORT_WAIT = 0.5  # seconds
ASKED_EVERY = 16  # runs: whether the server still answers


class HttpMessages:
    def __init__(self) -> None:
        self._stack, self._runs = contextlib.ExitStack(), 0
        config = doorstep.SimulatorConfig(num_worlds=2, num_threads=1, episode_length=4, max_levels=1)
        engine = self._stack.enter_context(doorstep.RolloutEngine(doorstep.RolloutConfig(simulator=config)))
        self._served = self._stack.enter_context(served(engine, {"random": "random", "idle": "idle"}))

    def inputs(self) -> Sequence[bytes]:
        bodies = corpus("http")
        gets = [b"GET /info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]
        gets.append(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return [_call(body) for body in bodies] + gets

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        head, separator, body = data.partition(b"\r\n\r\n")
        if body[:1] == b"[" and chance.random() < 0.7:
            bodies = [other.partition(b"\r\n\r\n")[2] for other in others]
            return _call(change_json(body, chance, bodies))
        if chance.random() < 0.3:
            header = chance.choice(_HEADERS) + chance.choice(_VALUES)
            return head + b"\r\n" + header + separator + body
        return change_bytes(head, chance, others) + separator + body

    def run(self, data: bytes) -> str:
        answer = b""
        with socket.create_connection(("127.0.0.1", self._served.port), PATIENCE) as connection:
            connection.settimeout(SHORT_WAIT)  # the server may be waiting for the rest of a call
            with contextlib.suppress(ConnectionError, TimeoutError):
                connection.sendall(data)
                while piece := connection.recv(1 << 16):
                    answer += piece
        self._runs += 1
        if self._runs % ASKED_EVERY == 0:
            assert self._served.call("GET", "/info")[0] == 200
        status = answer[9:12].decode(errors="replace")
        assert status != "500", answer
        if error := re.search(rb'"type": "(\w+)".*"argument": "([^"]*)', answer):
            return f"{status} {error[1].decode()} {error[2].decode()[:40]}"
        return status

    def close(self) -> None:
        self._stack.close()


_HEADERS = (b"Host: ", b"Origin: ", b"Content-Length: ", b"Transfer-Encoding: ", b"Content-Encoding: ", b"Expect: ",
            b"Authorization: ", b"Content-Type: ", b"Connection: ", b"Upgrade: ", b"Cookie: ")  # fmt: skip
_VALUES = (b"http://[", b"http://localhost", b"[::1", b"//", b"\xff\xfe", b"", b"0", b"-1", b"99999999999999999999",
           b"chunked", b"gzip", b"100-continue", b"Bearer \xe9", b"application/json; charset=\xff", b"close",
           b"http://[::1]:80:80", b"null", b"\x01", b"x" * 9000)  # fmt: skip


def _call(body: bytes) -> bytes:
    return head_of(f"Content-Length: {len(body)}", "Connection: close") + body
