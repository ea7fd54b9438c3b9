"""The gate before viser's server: who connects is checked, and what is sent is limited, before viser sees a byte.

viser has options for neither. It therefore listens on an address of the machine's own network that is drawn at random,
of which there are millions, so that pages of other sites cannot find it, and a gate listens where people connect.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import ipaddress
import secrets
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

from doorstep._callers import HEAD_SECONDS, WRITE_SECONDS, Guard, RefusedError, Room, report_once

MOST_CONNECTIONS = 64  # at once; a browser has up to 6 while it loads the page, then one
_FILES = 3  # of a connection: the client's, and both ends of that to viser
HEAD_BYTES = 16 << 10  # of a request
MESSAGE_BYTES = 4 << 20  # a browser's own are shorter, except for pictures that a program asks viser for
BYTES_PER_SECOND = 4 << 20  # that viser is given of one connection
FRAME_COST = 4 << 10  # counted for each frame, however short: at most 1,024 a second
_CHUNK = 16 << 10


def random_loopback() -> str:
    """One of the 2**23 addresses from 127.128.0.0 on."""
    return str(ipaddress.IPv4Address((127 << 24) + (1 << 23) + secrets.randbelow(1 << 23)))


@contextlib.contextmanager
def open_gate(host: str, port: int, inner: tuple[str, int], guard: Guard) -> Iterator[None]:
    """Lets those that `guard` lets in connect to `host` and `port`, and so to the server at `inner`.

    Raises:
        OSError: the address cannot be used.
    """
    loop = asyncio.new_event_loop()
    report_once(loop)
    thread = threading.Thread(target=loop.run_forever, name="doorstep viewer's gate", daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    gate = _Gate(inner, guard)
    try:
        run(gate.open(host, port))
        yield
    finally:
        run(gate.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Gate:
    def __init__(self, inner: tuple[str, int], guard: Guard) -> None:
        self._inner, self._guard = inner, guard
        self._room = Room(MOST_CONNECTIONS, _FILES)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()

    async def open(self, host: str, port: int) -> None:
        most = self._room.most
        self._server = await asyncio.start_server(self._meet, host, port, limit=HEAD_BYTES, backlog=most)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await asyncio.sleep(0)  # the connections that were just accepted become tasks
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # their sockets are closed

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._room.enter(writer.transport)
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
            self._guard.check(values_of(head, "host"), values_of(head, "origin"))
            with self._room.answering(writer.transport):
                await self._let_through(head, reader, writer)
        except RefusedError as refused:
            await _answer(writer, refused)
        except asyncio.LimitOverrunError:
            await _answer(writer, RefusedError(431, "the request is too long"))
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has gone, reads nothing, or sends what it must not
        except asyncio.CancelledError:
            pass  # the gate closes; asyncio would log that a task, which nobody awaits, was cancelled
        finally:
            self._connections.discard(task)
            self._room.leave(writer.transport)
            writer.transport.abort()

    async def _let_through(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(*self._inner)
        try:
            inner_writer.write(head)
            ways = [_pass_answers(inner_reader, writer)]
            if values_of(head, "upgrade"):  # other requests have nothing behind their head
                ways.append(_pass_frames(reader, inner_writer))
            tasks = [asyncio.ensure_future(way) for way in ways]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            inner_writer.transport.abort()


async def _answer(writer: asyncio.StreamWriter, refused: RefusedError) -> None:
    body = f"{refused}\n".encode()
    head = f"HTTP/1.1 {refused.status} {http.HTTPStatus(refused.status).phrase}\r\n"
    head += "Content-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        await asyncio.wait_for(_finish(writer), WRITE_SECONDS)


async def _finish(writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def _pass_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await asyncio.wait_for(writer.drain(), WRITE_SECONDS)
    await asyncio.wait_for(_finish(writer), WRITE_SECONDS)


async def _pass_frames(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Not faster than allowed: the rest waits in the client."""
    frames, clock = Frames(), asyncio.get_running_loop().time
    due = clock()
    while data := await reader.read(_CHUNK):
        cost = len(data) + FRAME_COST * frames.add(data)
        due = max(due, clock() - 1) + cost / BYTES_PER_SECOND  # what a pause has saved, a second's worth at most
        await asyncio.sleep(due - clock())
        writer.write(data)
        await writer.drain()


class Frames:
    """The WebSocket frames (RFC 6455, 5.2) that a client sends: none may be part of a message that is too long."""

    def __init__(self) -> None:
        self._head = bytearray()  # of the frame that begins
        self._left = 0  # bytes of the frame's contents that have not come yet
        self._message = 0  # bytes of the message so far, whose frames are not complete

    def add(self, data: bytes) -> int:
        """Reads on, and returns how many frames began.

        Raises:
            ConnectionAbortedError: a message is too long.
        """
        position = begun = 0
        while position < len(data):
            if self._left:
                taken = min(self._left, len(data) - position)
                self._left -= taken
                position += taken
                continue
            self._head.append(data[position])
            position += 1
            if (length := self._length()) is not None:
                self._begin(length)
                begun += 1
        return begun

    def _length(self) -> int | None:
        """Of the contents, once the head is complete."""
        head = self._head
        if len(head) < 2:
            return None
        extra = {126: 2, 127: 8}.get(head[1] & 0x7F, 0)
        mask = 4 if head[1] & 0x80 else 0
        if len(head) < 2 + extra + mask:
            return None
        return int.from_bytes(head[2 : 2 + extra], "big") if extra else head[1] & 0x7F

    def _begin(self, length: int) -> None:
        is_control, is_last = self._head[0] & 0x08, self._head[0] & 0x80
        message = length if is_control else self._message + length
        if message > MESSAGE_BYTES:
            raise ConnectionAbortedError(f"a message of more than {MESSAGE_BYTES} bytes")
        if not is_control:
            self._message = 0 if is_last else message
        self._left = length
        self._head.clear()


def values_of(head: bytes, name: str) -> list[str]:
    """The values of a header, in a request's head."""
    fields = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    return [value.strip() for field, _, value in fields if field.strip().lower() == name]
