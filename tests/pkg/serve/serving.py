"""A server in a thread, and clients that say what they like. Needs aiohttp."""

import asyncio
import contextlib
import json
import queue
import socket
import threading
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

from tests.pkg.rollouts.playing import still

from doorstep._callers import Guard
from doorstep.serve.server import run_server

JSON = {"Content-Type": "application/json"}
PATIENCE = 20  # seconds for an answer


class Waiting:
    """A policy that stands still, and waits until it may act."""

    def __init__(self):
        self.may_act = threading.Event()
        self.acts = threading.Event()

    def __call__(self, observations):
        self.acts.set()
        assert self.may_act.wait(PATIENCE)
        return still(observations)


def head_of(*headers):
    """What comes before the body of a call, with these headers too."""
    lines = ("POST /episodes HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers, "", "")
    return "\r\n".join(lines).encode()


def body_of(*requests):
    """A call with its body."""
    body = json.dumps(requests).encode()
    return head_of(f"Content-Length: {len(body)}"), body


def answer_of(connection):
    """Status and body."""
    answer = HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.read()


class Served:
    """Where the server is."""

    def __init__(self, url):
        self.url = url
        self.port = int(urlsplit(url).port or 0)

    def call(self, method, path, body=None, **headers):
        """Status, headers and body of an answer. body: bytes, or what JSON can hold."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, data, {**(JSON if data is not None else {}), **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()

    def refusal(self, method, path, body=None, **headers):
        status, _, answer = self.call(method, path, body, **headers)
        return status, json.loads(answer)["error"]

    def send(self, *sent):
        """Status and body of the answer to these bytes, after which the client sends no more."""
        with self.connect(*sent) as connection:
            connection.shutdown(socket.SHUT_WR)
            return answer_of(connection)

    def play(self, requests, **headers):
        """The results, in the order of the requests."""
        status, answer_headers, answer = self.call("POST", "/episodes", requests, **headers)
        assert status == 200, answer
        assert answer_headers["Content-Type"] == "application/x-ndjson"
        assert b"NaN" not in answer  # which is no JSON
        return sorted(map(json.loads, answer.splitlines()), key=lambda line: line["index"])

    def begin(self, requests):
        """A call of which nothing is read."""
        return self.connect(*body_of(*requests))

    def connect(self, *sent):
        """A connection over which these bytes were sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        for piece in sent:
            connection.sendall(piece)
        return connection


@contextlib.contextmanager
def served(engine, policies, host="127.0.0.1", token=None, allow_hosts=()):
    """A server of an engine with these named policies, None: its own, which ends with the block."""
    if policies is not None:
        engine.policies.clear()
        engine.policies.update(policies)
    started = queue.Queue()

    async def run():
        stop = asyncio.Event()
        ends = asyncio.get_running_loop(), stop
        try:
            guard = Guard(host, allow_hosts, token)
            await run_server(engine, host, 0, guard, lambda url: started.put((url, *ends)), stop)
        except BaseException as error:
            started.put(error)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    outcome = started.get(timeout=PATIENCE)
    if isinstance(outcome, BaseException):
        raise outcome
    url, loop, stop = outcome
    try:
        yield Served(url)
    finally:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        assert not thread.is_alive()
