"""`serve()`: offers an engine over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, final

from doorstep._arguments import check_integer, refuse
from doorstep._callers import HEAD_SECONDS, RETRY, WRITE_SECONDS, Guard, RefusedError, Room, is_loopback, report_once
from doorstep._native import VERSION_STRING
from doorstep._optional import missing
from doorstep.errors import ArgumentError, ClosedError, OutOfMemoryError, StateError
from doorstep.rollouts import EpisodeRequest, EpisodeResult, RolloutEngine
from doorstep.serve.messages import error_line, error_of, requests_of, result_line

try:
    from aiohttp import HttpVersion11, web
except ImportError as error:
    raise missing("doorstep.serve needs aiohttp", "serve", error) from error

MOST_CONNECTIONS = 1024  # at once
MOST_BYTES = 8 << 20  # of a request's body
MOST_EPISODES = 4096  # of all requests that are being answered
BODY_SECONDS = 30.0  # until a request's body is there
_PROBE_SECONDS = 0.25  # until it is tried again whether a client, which sends no more, still reads
_END_SECONDS = 5.0  # for answers that are being sent at the end

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_STATUSES = ((ArgumentError, 400), (ClosedError, 503), (OutOfMemoryError, 503), (StateError, 409))


def serve(
    engine: RolloutEngine,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    allow_hosts: Sequence[str] = (),
    on_start: Callable[[str], object] | None = None,
) -> None:
    """Offers an engine over HTTP until Ctrl-C or SIGTERM, in the main thread. The engine stays open.

    `POST /episodes` takes a JSON list of objects with the fields of an `EpisodeRequest`, all but `n`, and streams a
    line of JSON for each result, in the order in which episodes end; `index` is the place of its request in the list.
    Clients name the engine's `policies`, which may change meanwhile, as may its replicas; they send no functions and no
    paths. A client that disconnects cancels its requests. `GET /metrics` is the engine's metrics as Prometheus reads
    them, `GET /info` its config, policies, replicas and limits.

    Errors are JSON, `{"error": {"type", "message", "argument"}}`: 400 for requests that are refused, 401 and 403 for
    callers, 413 for a body of more than 8 MiB, 429 with `Retry-After` while 4,096 episodes are being answered, 503
    where the engine has ended or too many connections are open. An error after the first line is the last line.

    Args:
        engine: that plays. The first of its `policies` is played where a request has none.
        host: where it listens.
        port: 0 chooses a free one.
        token: that clients must send, as `Authorization: Bearer TOKEN`; at least 16 characters. None: no token.
        allow_hosts: names of proxies on this machine, by which clients without a token reach the server, such as
            "machine.example". With a token every name is allowed.
        on_start: called with the URL when clients can connect.

    Raises:
        ArgumentError: the engine has no named policies, or other machines reach the host and there is no token.
        LibraryError: aiohttp is missing: pip install "doorstep[serve]".
        OSError: the address cannot be used.
    """
    asyncio.run(run_server(engine, host, port, Guard(host, allow_hosts, token), on_start or (lambda url: None)))


async def run_server(
    engine: RolloutEngine,
    host: str,
    port: int,
    guard: Guard,
    on_start: Callable[[str], object],
    stop: asyncio.Event | None = None,
) -> None:
    """As `serve()`; stop: ends it too."""
    if not isinstance(engine, RolloutEngine):
        refuse("engine", "a doorstep.RolloutEngine", engine)
    if not engine.policies:
        refuse("engine", "one with named policies", engine, "set them first: engine.policies[\"random\"] = \"random\"")
    if not guard.has_token and not is_loopback(host):
        hint = "pass a token: --token-file FILE, or token= in Python; or listen on 127.0.0.1"
        refuse("host", "an address of this machine alone, such as 127.0.0.1, where there is no token", host, hint)
    offer = _Offer(engine)
    check_integer("port", port, 0, 65535)
    report_once(loop := asyncio.get_running_loop())
    callers = web.Server(_answering(guard, offer), request_factory=_request_of, handler_cancellation=True)
    server = await loop.create_server(lambda: _Connection(callers, offer.room), host, port, backlog=offer.room.most)
    try:
        async with _until_signal(stop or asyncio.Event()):
            on_start(f"http://{f'[{host}]' if ':' in host else host}:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()
        offer.end()
        await asyncio.sleep(0)  # requests that have just come begin
        callers.pre_shutdown()
        await callers.shutdown(_END_SECONDS)


@contextlib.asynccontextmanager
async def _until_signal(stop: asyncio.Event) -> AsyncIterator[None]:
    """Waits at the end for the event or, in the main thread, the first signal; a second one interrupts."""
    loop = asyncio.get_running_loop()
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
        await stop.wait()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


class _Connection(web.RequestHandler):  # type: ignore[misc]
    """aiohttp's, with room for so many, and for clients that end their side when they have sent their request."""

    def __init__(self, callers: web.Server, room: Room) -> None:
        loop = asyncio.get_running_loop()
        limits = {"keepalive_timeout": HEAD_SECONDS, "auto_decompress": False}  # bodies are as large as what is sent
        super().__init__(callers, loop=loop, access_log=None, **limits)
        self.request: web.BaseRequest | None = None  # that is being answered
        self.has_ended = False  # the client sends no more
        self._room = room
        self.first_head = loop.call_later(HEAD_SECONDS, self.force_close)  # later ones: keepalive_timeout

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.opened = transport  # aiohttp forgets it when it closes it
        self._room.enter(transport)

    def eof_received(self) -> bool:
        """Whether the connection stays open, for an answer to what has come."""
        self.has_ended = self.request is not None and self.request.content.is_eof()
        return self.has_ended

    def connection_lost(self, error: BaseException | None) -> None:
        self.first_head.cancel()
        self._room.leave(self.opened)
        super().connection_lost(error)

    def handle_error(self, request: Any, status: int = 500, exc: Any = None, message: Any = None) -> web.Response:
        """What is no HTTP."""
        said = " ".join(f"{message or exc}".split())
        return _refusal(RefusedError(status, f"this is no request of HTTP/1.1: {said}"))


def _request_of(message: Any, payload: Any, connection: _Connection, *rest: Any) -> web.BaseRequest:
    connection.first_head.cancel()
    connection.request = web.BaseRequest(message, payload, connection, *rest, asyncio.get_running_loop())
    return connection.request


def _refusal(refused: RefusedError) -> web.Response:
    """The connection ends: those that may not call have no use for it, others of what they have sent may follow."""
    response = web.json_response(error_of(refused), status=refused.status, headers=refused.headers)
    response.force_close()
    return response


def _answering(guard: Guard, offer: _Offer) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Lets calls in, and makes answers of errors."""
    handlers = {"/episodes": ("POST", offer.play), "/metrics": ("GET", offer.metrics), "/info": ("GET", offer.info)}

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        headers = request.headers
        try:
            guard.check(headers.getall("Host", []), headers.getall("Origin", []), headers.get("Authorization", ""))
            if request.path not in handlers:
                raise RefusedError(404, f"there are {', '.join(handlers)}")
            method, handler = handlers[request.path]
            if request.method != method:
                raise RefusedError(405, f"{request.path} takes {method}", Allow=method)
            response = await handler(request)
        except RefusedError as refused:
            response = _refusal(refused)
        except ConnectionError:
            response = web.Response(status=400)  # to nobody
        except Exception as error:
            status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
            said = error
            if status == 500:
                context = {"message": "a request has failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
                said = RuntimeError(f"the server has failed: {type(error).__name__}; its log says more")
            response = web.json_response(error_of(said), status=status)
        request.protocol.request = None
        if request.protocol.has_ended:
            response.force_close()
        return response

    return answer


@final
class _Offer:
    """What the server does for those that are let in."""

    def __init__(self, engine: RolloutEngine) -> None:
        self.room = Room(MOST_CONNECTIONS)
        self._engine = engine
        self._most = min(MOST_EPISODES, engine.config.queue_capacity)
        self._in_flight = 0  # episodes
        self._streams: set[_Stream] = set()
        self._is_ending = False

    def end(self) -> None:
        """Answers that are being sent end soon."""
        self._is_ending = True
        for stream in self._streams:
            stream.end()

    async def metrics(self, request: web.BaseRequest) -> Any:
        metrics = self._engine.metrics
        if metrics is None:
            raise RefusedError(404, "this engine measures nothing")
        text = await asyncio.to_thread(metrics.to_prometheus)
        return web.Response(body=text.encode(), headers={"Content-Type": _PROMETHEUS})

    async def info(self, request: web.BaseRequest) -> Any:
        return web.json_response({
            "doorstep": VERSION_STRING,
            "config": self._engine.config.to_dict(),
            "policies": list(self._engine.policies),
            "replicas": list(self._engine.replicas),
            "in_flight": self._in_flight,
            "limits": {"in_flight": self._most, "body_bytes": MOST_BYTES},
        })

    async def play(self, request: web.BaseRequest) -> Any:
        policies = list(self._engine.policies)
        asked = await asyncio.to_thread(requests_of, await _body_of(request), policies, self._most)
        if self._is_ending:
            raise ClosedError("this server is ending", hint="send the requests to another one")
        if self._in_flight + len(asked) > self._most:
            busy = f"{self._in_flight} episodes are being answered, and at most {self._most} may be"
            raise RefusedError(429, busy, **RETRY)
        with self.room.answering(request.protocol.opened):
            self._in_flight += len(asked)
            stream = _Stream()
            self._streams.add(stream)
            try:
                await stream.submit(self._engine, asked)
                return await stream.send(request)
            finally:
                stream.cancel()
                self._streams.remove(stream)
                self._in_flight -= len(asked)


async def _body_of(request: web.BaseRequest) -> bytes:
    if request.content_type != "application/json":  # which forms of pages cannot send
        raise RefusedError(415, "Content-Type must be application/json")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise RefusedError(415, "the body must not be compressed", **{"Accept-Encoding": "identity"})
    if request.headers.get("Expect", "100-continue").lower() != "100-continue":
        raise RefusedError(417, "Expect may be 100-continue only")
    if "Expect" in request.headers and request.version >= HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer itself has not begun
    body = bytearray()

    async def read() -> None:
        async for piece in request.content.iter_any():
            body.extend(piece)
            if len(body) > MOST_BYTES:
                raise RefusedError(413, f"the body must have at most {MOST_BYTES} bytes")

    try:
        await asyncio.wait_for(read(), BODY_SECONDS)
    except asyncio.TimeoutError:
        raise RefusedError(408, f"the body must be there within {BODY_SECONDS:g} seconds") from None
    except web.RequestPayloadError as error:
        raise RefusedError(400, f"the body is not what its head says: {error}") from None
    return bytes(body)


@final
class _Stream:
    """The results of one call, in the order in which they come."""

    def __init__(self) -> None:
        self._futures: list[Future[EpisodeResult]] = []
        self._done: asyncio.Queue[int | None] = asyncio.Queue()  # places of futures; None: the server ends

    async def submit(self, engine: RolloutEngine, requests: list[EpisodeRequest]) -> None:
        """All or, with an error, none. The engine may have no room for a while, and is waited for in a thread."""
        submitting = asyncio.ensure_future(asyncio.to_thread(engine.future, requests))
        try:
            self._futures = await asyncio.shield(submitting)
        except asyncio.CancelledError:
            submitting.add_done_callback(_cancel_submitted)
            raise
        loop = asyncio.get_running_loop()
        for place, future in enumerate(self._futures):
            future.add_done_callback(lambda _, place=place: self._tell(loop, place))  # type: ignore[misc]

    def _tell(self, loop: asyncio.AbstractEventLoop, place: int) -> None:
        """In the engine's thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._done.put_nowait, place)

    async def send(self, request: web.BaseRequest) -> Any:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):  # the client has gone
            for _ in self._futures:
                place = await self._next(request, response)
                if place is None:
                    await _write(request, response, error_line(ClosedError("this server is ending")))
                    break
                await _write(request, response, self._line(place))
        return response

    async def _next(self, request: web.BaseRequest, response: web.StreamResponse) -> int | None:
        """A client that sends no more has perhaps gone: that is seen only after something was written."""
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                return await asyncio.wait_for(self._done.get(), _PROBE_SECONDS)
            if request.protocol.has_ended:
                await _write(request, response, b" ")  # before a line, which may begin so

    def _line(self, place: int) -> bytes:
        try:
            return result_line(place, self._futures[place].result())
        except StateError as error:  # the episode has failed
            return result_line(place, error.result)  # type: ignore[attr-defined]
        except (CancelledError, ClosedError) as error:
            return error_line(ClosedError(f"the request was not played: {error}"))

    def end(self) -> None:
        self._done.put_nowait(None)

    def cancel(self) -> None:
        _cancel(self._futures)


def _cancel_submitted(submitting: asyncio.Task[list[Future[EpisodeResult]]]) -> None:
    if not submitting.cancelled() and submitting.exception() is None:  # it is cancelled where the loop ends
        _cancel(submitting.result())


def _cancel(futures: list[Future[EpisodeResult]]) -> None:
    for future in futures:
        future.cancel()


async def _write(request: web.BaseRequest, response: web.StreamResponse, line: bytes) -> None:
    """Does not wait for ever for a client that reads nothing."""
    try:
        await asyncio.wait_for(response.write(line), WRITE_SECONDS)
    except asyncio.TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client reads nothing") from None
