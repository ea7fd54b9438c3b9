"""`serve()`: offers an engine over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeAlias, final

from doorstep._arguments import check_integer, refuse
from doorstep._native import VERSION_STRING
from doorstep._optional import missing
from doorstep.errors import ArgumentError, ClosedError, OutOfMemoryError, StateError
from doorstep.rollouts import EpisodeRequest, EpisodeResult, RolloutEngine
from doorstep.serve.guard import Guard, RefusedError
from doorstep.serve.messages import error_line, error_of, requests_of, result_line

try:
    from aiohttp import HttpVersion11, web
except ImportError as error:
    raise missing("doorstep.serve needs aiohttp", "serve", error) from error

MOST_BYTES = 8 << 20  # of a request's body
MOST_EPISODES = 4096  # of all requests that are being answered
BODY_SECONDS = 30.0  # until a request's body is there
WRITE_SECONDS = 30.0  # until a client has read a result
_END_SECONDS = 5.0  # for answers that are being sent at the end
_RETRY = {"Retry-After": "1"}  # seconds

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_STATUSES = ((ArgumentError, 400), (ClosedError, 503), (OutOfMemoryError, 503), (StateError, 409))

_Handler: TypeAlias = Callable[[Any], Awaitable[Any]]
_log = logging.getLogger("doorstep.serve")
_http_log = logging.getLogger("doorstep.serve.http")
_http_log.setLevel(logging.CRITICAL)  # of clients' mistakes, which would fill it


def serve(
    engine: RolloutEngine,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    on_start: Callable[[str], object] | None = None,
) -> None:
    """Offers an engine over HTTP until Ctrl-C or SIGTERM, in the main thread. The engine stays open.

    `POST /episodes` takes a JSON list of objects with the fields of an `EpisodeRequest`, and streams a line of JSON for
    each result, in the order in which episodes end; `index` is the place of its request in the list. Clients name the
    engine's `policies`, which may change meanwhile, as may its replicas; they send no functions and no paths. A client
    that disconnects cancels its requests. `GET /metrics` is the engine's metrics as Prometheus reads them, `GET /info`
    its config, policies, replicas and limits.

    Errors are JSON, `{"error": {"type", "message", "argument"}}`: 400 for requests that are refused, 401 and 403 for
    callers, 413 for a body of more than 8 MiB, 429 with `Retry-After` while 4,096 episodes are being answered, 503
    where the engine has ended. An error after the first line is the last line.

    Args:
        engine: that plays. The first of its `policies` is played where a request has none.
        host: where it listens.
        port: 0 chooses a free one.
        token: that clients must send, as `Authorization: Bearer TOKEN`; at least 16 characters. None: no token.
        on_start: called with the URL when clients can connect.

    Raises:
        ArgumentError: the engine has no named policies, or other machines reach the host and there is no token.
        LibraryError: aiohttp is missing: pip install "doorstep[serve]".
        OSError: the address cannot be used.
    """
    asyncio.run(run_server(engine, host, port, token, on_start))


async def run_server(
    engine: RolloutEngine,
    host: str,
    port: int,
    token: str | None,
    on_start: Callable[[str], object] | None,
    stop: asyncio.Event | None = None,
) -> None:
    """As `serve()`; stop: ends it too."""
    if not isinstance(engine, RolloutEngine):
        refuse("engine", "a doorstep.RolloutEngine", engine)
    if not engine.policies:
        refuse("engine", "one with named policies", engine, "set them first: engine.policies[\"random\"] = \"random\"")
    guard, offer = Guard(host, token), _Offer(engine)
    check_integer("port", port, 0, 65535)
    application = web.Application(client_max_size=MOST_BYTES)
    application.router.add_route("*", "/{path:.*}", _answering(guard, offer), expect_handler=_answer_expectation)
    runner = web.AppRunner(
        application,
        handle_signals=False,
        handler_cancellation=True,  # when the client disconnects
        auto_decompress=False,  # bodies are as large as what is sent
        access_log=None,
        logger=_http_log,
        shutdown_timeout=_END_SECONDS,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        async with _until_signal(stop or asyncio.Event()):
            if on_start is not None:
                on_start(f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}")
    finally:
        offer.end()
        await runner.cleanup()


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


async def _answer_expectation(request: web.Request) -> web.Response | None:
    """Lets a client that waits with its body send it. aiohttp's own handler fails at an Expect that is no text."""
    if request.headers["Expect"].lower() != "100-continue":
        return web.json_response(error_of(RefusedError(417, "Expect may be 100-continue only")), status=417)
    if request.version >= HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer itself has not begun
    return None


def _answering(guard: Guard, offer: _Offer) -> _Handler:
    """Lets calls in, and makes answers of errors. aiohttp's own table of handlers would keep those of ended servers."""
    handlers = {"/episodes": ("POST", offer.play), "/metrics": ("GET", offer.metrics), "/info": ("GET", offer.info)}

    async def answer(request: web.Request) -> Any:
        try:
            guard.check(request.headers)
            if request.path not in handlers:
                raise RefusedError(404, f"there are {', '.join(handlers)}")
            method, handler = handlers[request.path]
            if request.method != method:
                raise RefusedError(405, f"{request.path} takes {method}", Allow=method)
            return await handler(request)
        except RefusedError as refused:
            return web.json_response(error_of(refused), status=refused.status, headers=refused.headers)
        except web.HTTPException as error:  # of the library: a body that is too large
            return web.json_response(error_of(error), status=error.status)
        except (ArgumentError, ClosedError, OutOfMemoryError, StateError) as error:
            status = next(status for kind, status in _STATUSES if isinstance(error, kind))
            return web.json_response(error_of(error), status=status)
        except ConnectionError:
            return web.Response(status=400)  # to nobody
        except Exception as error:
            _log.exception("a request has failed")
            hidden = RuntimeError(f"the server has failed: {type(error).__name__}; its log says more")
            return web.json_response(error_of(hidden), status=500)

    return answer


@final
class _Offer:
    """What the server does for those that are let in."""

    def __init__(self, engine: RolloutEngine) -> None:
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

    async def metrics(self, request: web.Request) -> Any:
        metrics = self._engine.metrics
        if metrics is None:
            raise RefusedError(404, "this engine measures nothing")
        text = await asyncio.to_thread(metrics.to_prometheus)
        return web.Response(body=text.encode(), headers={"Content-Type": _PROMETHEUS})

    async def info(self, request: web.Request) -> Any:
        return web.json_response({
            "doorstep": VERSION_STRING,
            "config": self._engine.config.to_dict(),
            "policies": list(self._engine.policies),
            "replicas": list(self._engine.replicas),
            "in_flight": self._in_flight,
            "limits": {"in_flight": self._most, "body_bytes": MOST_BYTES},
        })

    async def play(self, request: web.Request) -> Any:
        policies = list(self._engine.policies)
        asked = await asyncio.to_thread(requests_of, await _body_of(request), policies, self._most)
        if self._is_ending:
            raise ClosedError("this server is ending", hint="send the requests to another one")
        episodes = sum(one.n for one in asked)
        if self._in_flight + episodes > self._most:
            busy = f"{self._in_flight} episodes are being answered, and at most {self._most} may be"
            raise RefusedError(429, busy, **_RETRY)
        self._in_flight += episodes
        stream = _Stream()
        self._streams.add(stream)
        try:
            await stream.submit(self._engine, asked)
            return await stream.send(request)
        finally:
            stream.cancel()
            self._streams.remove(stream)
            self._in_flight -= episodes


async def _body_of(request: web.Request) -> bytes:
    if request.content_type != "application/json":  # which forms of pages cannot send
        raise RefusedError(415, "Content-Type must be application/json")
    try:
        body: bytes = await asyncio.wait_for(request.read(), BODY_SECONDS)
    except asyncio.TimeoutError:
        raise RefusedError(408, f"the body must be there within {BODY_SECONDS:g} seconds") from None
    return body


@final
class _Stream:
    """The results of one call, in the order in which they come."""

    def __init__(self) -> None:
        self._futures: list[Future[EpisodeResult]] = []
        self._indices: list[int] = []  # of their requests
        self._done: asyncio.Queue[int | None] = asyncio.Queue()  # places of futures; None: the server ends

    async def submit(self, engine: RolloutEngine, requests: list[EpisodeRequest]) -> None:
        """All or, with an error, none. The engine may have no room for a while, and is waited for in a thread."""
        submitting = asyncio.ensure_future(asyncio.to_thread(engine._core.submit_futures, requests, None))
        try:
            self._futures = await asyncio.shield(submitting)
        except asyncio.CancelledError:
            submitting.add_done_callback(_cancel_submitted)
            raise
        self._indices = [index for index, request in enumerate(requests) for _ in range(request.n)]
        loop = asyncio.get_running_loop()
        for place, future in enumerate(self._futures):
            future.add_done_callback(lambda _, place=place: self._tell(loop, place))  # type: ignore[misc]

    def _tell(self, loop: asyncio.AbstractEventLoop, place: int) -> None:
        """In the engine's thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._done.put_nowait, place)

    async def send(self, request: web.Request) -> Any:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):  # the client has gone
            for _ in self._futures:
                place = await self._done.get()
                if place is None:
                    await _write(request, response, error_line(ClosedError("this server is ending")))
                    break
                await _write(request, response, self._line(place))
        return response

    def _line(self, place: int) -> bytes:
        index = self._indices[place]
        try:
            return result_line(index, self._futures[place].result())
        except StateError as error:  # the episode has failed
            return result_line(index, error.result)  # type: ignore[attr-defined]
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


async def _write(request: web.Request, response: web.StreamResponse, line: bytes) -> None:
    """Does not wait for ever for a client that reads nothing."""
    try:
        await asyncio.wait_for(response.write(line), WRITE_SECONDS)
    except asyncio.TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client reads nothing") from None
