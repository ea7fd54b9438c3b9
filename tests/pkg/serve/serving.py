"""A server in a thread, and clients that say what they like. Needs aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from doorstep import RolloutEngine
from doorstep._callers import Guard
from doorstep.serve.server import run_server

JSON = {"Content-Type": "application/json"}
PATIENCE = 20  # seconds for an answer


class Waiting:
    """A policy that stands still, and waits until it may act."""

    def __init__(self) -> None:
        self.may_act = threading.Event()
        self.acts = threading.Event()

    def __call__(self, observations: Any) -> Any:
        self.acts.set()
        assert self.may_act.wait(PATIENCE)
        return np.tile(np.array((0, 0, 2, 0), np.int32), (len(observations), 1))


def failing(observations: Any) -> Any:
    raise ValueError("a policy that fails")


def head_of(*headers: str) -> bytes:
    """What comes before the body of a call, with these headers too."""
    lines = ("POST /episodes HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers, "", "")
    return "\r\n".join(lines).encode()


class Served:
    """Where the server is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.port = int(urlsplit(url).port or 0)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer. body: bytes, or what JSON can hold."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, data, {**(JSON if data is not None else {}), **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()

    def refusal(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        status, _, answer = self.call(method, path, body, **headers)
        error: dict[str, Any] = json.loads(answer)["error"]
        return status, error

    def send(self, *sent: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to these bytes, after which the client sends no more."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            for piece in sent:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            answer = HTTPResponse(connection)
            answer.begin()
            return answer.status, answer.read()

    def play(self, requests: Any, **headers: str) -> list[dict[str, Any]]:
        """The results, in the order of the requests."""
        status, answer_headers, answer = self.call("POST", "/episodes", requests, **headers)
        assert status == 200, answer
        assert answer_headers["Content-Type"] == "application/x-ndjson"
        return sorted(map(json.loads, answer.splitlines()), key=lambda line: line["index"])

    def begin(self, requests: Any) -> socket.socket:
        """A call of which nothing is read."""
        body = json.dumps(requests).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        connection.sendall(head_of(f"Content-Length: {len(body)}") + body)
        return connection


@contextlib.contextmanager
def served(
    engine: RolloutEngine,
    policies: Any,
    host: str = "127.0.0.1",
    token: str | None = None,
    allow_hosts: Sequence[str] = (),
) -> Iterator[Served]:
    """A server of an engine with these named policies, None: its own, which ends with the block."""
    if policies is not None:
        engine.policies.clear()
        engine.policies.update(policies)
    started: queue.Queue[Any] = queue.Queue()

    async def run() -> None:
        stop = asyncio.Event()
        ends = asyncio.get_running_loop(), stop
        guard = Guard(host, allow_hosts, token)
        await run_server(engine, host, 0, guard, lambda url: started.put((url, *ends)), stop)

    thread = threading.Thread(target=lambda: _run(run, started))
    thread.start()
    url, loop, stop = _or_raise(started.get(timeout=PATIENCE))
    try:
        yield Served(url)
    finally:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        assert not thread.is_alive()


def _run(run: Any, started: queue.Queue[Any]) -> None:
    try:
        asyncio.run(run())
    except BaseException as error:
        started.put(error)


def _or_raise(outcome: Any) -> Any:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
